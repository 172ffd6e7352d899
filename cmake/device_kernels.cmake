# Kernels for other devices: run on the host by the emulator in builds with tests.

if(DS4_TESTS)
  file(GLOB DS4_EMULATOR_SOURCES CONFIGURE_DEPENDS native/kernels/emulator/*.cpp)
  target_sources(ds4kernels PRIVATE ${DS4_EMULATOR_SOURCES})
endif()
