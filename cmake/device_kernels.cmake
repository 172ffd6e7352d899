# The project's own kernels for other devices: one library for each kind that ggml is built for. The emulator, which runs
# the same kernels on the host, is in builds with tests.

target_sources(ds4kernels PRIVATE native/kernels/launcher.cpp)

# ds4_device_library(NAME SOURCES...)   adds libds4NAME to the kernels, and defines DS4_NAME there.
function(ds4_device_library name)
  add_library(ds4${name} STATIC ${ARGN})
  target_include_directories(ds4${name} PRIVATE native/kernels native/include)
  target_link_libraries(ds4${name} PRIVATE ggml)
  target_link_libraries(ds4kernels PRIVATE ds4${name})
  string(TOUPPER ${name} upper)
  target_compile_definitions(ds4kernels PRIVATE DS4_${upper})
endfunction()

if(GGML_CUDA)
  if(NOT CMAKE_CUDA_ARCHITECTURES AND GGML_NATIVE)
    set(CMAKE_CUDA_ARCHITECTURES native)
  elseif(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-virtual) # later ones translate them when they are loaded
  endif()
  enable_language(CUDA)
  ds4_device_library(cuda native/kernels/gpu/cuda/launcher.cu)
  set_target_properties(ds4cuda PROPERTIES CUDA_STANDARD 20 CUDA_RUNTIME_LIBRARY Shared) # ggml's own
endif()

if(GGML_HIP)
  if(GPU_TARGETS AND NOT CMAKE_HIP_ARCHITECTURES)
    set(CMAKE_HIP_ARCHITECTURES ${GPU_TARGETS})
  endif()
  enable_language(HIP)
  find_package(hip REQUIRED)
  ds4_device_library(hip native/kernels/gpu/hip/launcher.hip)
  set_target_properties(ds4hip PROPERTIES HIP_STANDARD 20)
  target_link_libraries(ds4hip PRIVATE hip::host)
endif()

if(GGML_METAL)
  include(cmake/metal_source.cmake)
  set(DS4_METAL_TEXTS "")
  file(GLOB DS4_METAL_SOURCES CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/native/kernels"
       native/kernels/metal/*.metal)
  foreach(source IN LISTS DS4_METAL_SOURCES)
    ds4_metal_source("${CMAKE_CURRENT_SOURCE_DIR}/native/kernels" ${source} text)
    string(APPEND DS4_METAL_TEXTS "R\"METAL(${text})METAL\",\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "native/kernels/${source}")
  endforeach()
  file(CONFIGURE OUTPUT metal/sources.inc CONTENT "@DS4_METAL_TEXTS@" @ONLY)
  enable_language(OBJCXX)
  ds4_device_library(metal native/kernels/metal/launcher.mm native/kernels/metal/queue.mm)
  target_include_directories(ds4metal PRIVATE "${CMAKE_CURRENT_BINARY_DIR}") # metal/sources.inc
  target_compile_options(ds4metal PRIVATE -fobjc-arc)
  target_link_libraries(ds4metal PRIVATE "-framework Foundation" "-framework Metal")
endif()

if(DS4_TESTS)
  file(GLOB DS4_EMULATOR_SOURCES CONFIGURE_DEPENDS native/kernels/emulator/*.cpp)
  target_sources(ds4kernels PRIVATE ${DS4_EMULATOR_SOURCES})
  target_compile_definitions(ds4kernels PRIVATE DS4_EMULATOR)
  set_source_files_properties(native/kernels/emulator/metal_launcher.cpp PROPERTIES
    INCLUDE_DIRECTORIES "${CMAKE_CURRENT_SOURCE_DIR}/native/kernels/emulator/metal" # its <metal_stdlib>
    COMPILE_OPTIONS -Wno-attributes)                                               # Metal's own
endif()
