# Kernels for other devices. The emulator runs them on the host in builds with tests.

target_sources(ds4kernels PRIVATE native/kernels/launcher.cpp)
target_include_directories(ds4kernels PRIVATE native/include) # ds4/errors.h

if(DS4_TESTS)
  file(GLOB DS4_EMULATOR_SOURCES CONFIGURE_DEPENDS native/kernels/emulator/*.cpp)
  target_sources(ds4kernels PRIVATE ${DS4_EMULATOR_SOURCES})
endif()
