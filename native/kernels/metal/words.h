// The words that Metal kernels here use in place of pointers and arrays, so that the emulator can check them. A build
// puts this text before each kernel's, whose #include lines it leaves out: a library is made of one text.
#pragma once

#if !defined(DS4_EMULATED)
#define DS4_DEVICE(type) device type*
#define DS4_THREADGROUP(type) threadgroup type*
#define DS4_SHARED(type, name, count) threadgroup type name[count]
#endif
