# Brings ggml into the build: from DS4_GGML_DIR, or from its source package on PyPI (pinned by sha256).

set(DS4_GGML_PACKAGE "libggml-python==0.20.2.post1")
set(DS4_GGML_ARCHIVE "libggml_python-0.20.2.post1")
set(DS4_GGML_SHA256 "e47ff53506342959ffb3ce15380b82828fea10ec5f208f9ef6915895f1a7a176")

function(ds4_fetch_ggml out)
  set(cache "${CMAKE_BINARY_DIR}/ggml-source")
  set(archive "${cache}/${DS4_GGML_ARCHIVE}.tar.gz")
  set(tree "${cache}/${DS4_GGML_ARCHIVE}")
  if(NOT EXISTS "${archive}")
    find_package(Python REQUIRED COMPONENTS Interpreter)
    message(STATUS "Fetching ${DS4_GGML_PACKAGE} with pip")
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -m pip download --quiet --no-deps
              --no-binary libggml-python --dest "${cache}" "${DS4_GGML_PACKAGE}"
      RESULT_VARIABLE result
      ERROR_VARIABLE errors)
    if(result)
      message(FATAL_ERROR "pip could not fetch ${DS4_GGML_PACKAGE} (exit ${result}):\n${errors}\n"
                          "Without a package index, give a local ggml tree: -DDS4_GGML_DIR=DIR")
    endif()
  endif()
  file(SHA256 "${archive}" found)
  if(NOT found STREQUAL DS4_GGML_SHA256)
    file(REMOVE "${archive}")
    message(FATAL_ERROR "${DS4_GGML_PACKAGE}: sha256 is ${found}, wanted ${DS4_GGML_SHA256}; the file was removed")
  endif()
  if(NOT EXISTS "${tree}/ggml/CMakeLists.txt")
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${cache}")
  endif()
  set(${out} "${tree}/ggml" PARENT_SCOPE)
endfunction()

if(DS4_GGML_DIR)
  if(NOT EXISTS "${DS4_GGML_DIR}/include/ggml.h")
    message(FATAL_ERROR "DS4_GGML_DIR: no include/ggml.h in '${DS4_GGML_DIR}'; give the root of a ggml tree")
  endif()
  set(DS4_GGML_SOURCE "${DS4_GGML_DIR}")
else()
  ds4_fetch_ggml(DS4_GGML_SOURCE)
endif()

set(BUILD_SHARED_LIBS ON)
set(GGML_LLAMAFILE_DEFAULT ON) # its products serve many rows far better than row by row dots
set(GGML_CCACHE OFF) # CMAKE_CXX_COMPILER_LAUNCHER says it for the whole build
set(GGML_RPC ON) # another machine as a device
set(GGML_CUDA_GRAPHS_DEFAULT ON) # our graphs keep their shapes and addresses; ggml leaves it off but for llama.cpp
set(GGML_BUILD_TESTS OFF)
set(GGML_BUILD_EXAMPLES OFF)
if(DS4_PORTABLE)
  set(GGML_NATIVE OFF)
  set(GGML_BACKEND_DL ON)
  set(GGML_CPU_ALL_VARIANTS ON)
  set(GGML_OPENMP OFF)
endif()
add_subdirectory("${DS4_GGML_SOURCE}" ggml EXCLUDE_FROM_ALL)
