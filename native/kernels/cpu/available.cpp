#include <array>

#include "cpu/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace ds4::kernels {

namespace avx512 {
extern const Kernels kernels;
}
namespace avx2vnni {
extern const Kernels kernels;
}
namespace avx2 {
extern const Kernels kernels;
}
namespace neon {
extern const Kernels kernels;
}
namespace portable {
extern const Kernels kernels;
}

namespace {

struct Found {
    std::array<const Kernels*, 4> list{};
    size_t count = 0;
    void add(const Kernels& kernels, bool usable) {
        if (usable) list[count++] = &kernels;
    }
};

#if defined(__x86_64__)
/// AVX-VNNI, which older compilers cannot ask for by name.
bool has_avx_vnni() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#elif defined(__aarch64__)
bool has_dot_products() {
#if defined(__linux__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
    return true;  // every Mac with an ARM processor
#endif
}
#endif

Found find() {
    Found found;
#if defined(__x86_64__)
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    const bool avx512 =
        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
    found.add(avx512::kernels, avx2 && avx512);
    found.add(avx2vnni::kernels, avx2 && has_avx_vnni());
    found.add(avx2::kernels, avx2);
#elif defined(__aarch64__)
    found.add(neon::kernels, has_dot_products());
#endif
    found.add(portable::kernels, true);
    return found;
}

}  // namespace

std::span<const Kernels* const> available() {
    static const Found found = find();
    return {found.list.data(), found.count};
}

}  // namespace ds4::kernels
