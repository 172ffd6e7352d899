// choice    prints the name of the kernels that are chosen on the processor that it runs on. They are names alone here.

#include <cstdio>

#include "cpu/kernels.h"

namespace ds4::kernels {

static Kernels named(const char* name) {
    Kernels kernels{};
    kernels.name = name;
    return kernels;
}

namespace avx512 {
extern const Kernels kernels;
const Kernels kernels = named("avx512");
}  // namespace avx512
namespace avx2vnni {
extern const Kernels kernels;
const Kernels kernels = named("avx2vnni");
}  // namespace avx2vnni
namespace avx2 {
extern const Kernels kernels;
const Kernels kernels = named("avx2");
}  // namespace avx2
namespace neon {
extern const Kernels kernels;
const Kernels kernels = named("neon");
}  // namespace neon
namespace portable {
extern const Kernels kernels;
const Kernels kernels = named("portable");
}  // namespace portable

}  // namespace ds4::kernels

int main() { std::puts(ds4::kernels::available().front()->name); }
