// The words that Metal kernels here use in place of pointers and arrays, so that the emulator can check them. A build
// puts what a kernel includes of the project in its place: a library is made of one text.
#pragma once

#if !defined(DS4_EMULATED)
#define DS4_GLOBAL(type) device type*
#define DS4_THREADGROUP(type) threadgroup type*
#define DS4_OWN(type) thread type*
#define DS4_SHARED(type, name, count) threadgroup type name[count]
#endif
