# The project's own CPU kernels: one object file for each kind of processor, chosen at run time.

add_library(ds4kernels STATIC native/kernels/cpu/packing.cpp native/kernels/cpu/available.cpp
            native/kernels/kernel_choice.cpp)
target_include_directories(ds4kernels PUBLIC native/kernels PRIVATE native/include) # ds4/errors.h
target_include_directories(ds4kernels PRIVATE "${DS4_GGML_SOURCE}/src") # ggml-common.h
target_link_libraries(ds4kernels PUBLIC ggml)

function(ds4_kernels name)
  set(source native/kernels/cpu/${name}/kernels.cpp)
  target_sources(ds4kernels PRIVATE ${source})
  # GCC 12 takes undefined vectors in its own headers for uninitialised ones.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-O3;-Wno-uninitialized;-Wno-maybe-uninitialized;${ARGN}")
endfunction()

ds4_kernels(portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mf16c)
  ds4_kernels(avx2 ${avx2})
  ds4_kernels(avx2vnni ${avx2} -mavxvnni)
  ds4_kernels(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vnni)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  ds4_kernels(neon -march=armv8.2-a+dotprod)
endif()
if(NOT MSVC)
  # Contraction would round differently where a compiler sees a chance.
  target_compile_options(ds4kernels PRIVATE -Wall -Wextra -ffp-contract=off $<$<BOOL:${DS4_WERROR}>:-Werror>)
endif()
