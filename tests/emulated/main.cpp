// Compares the kernels for some kinds of processors with the portable ones.
//
// agreement NAME WHERE...   for each pair prints a line about what was found of the kernels NAME, which are run WHERE,
//                           and ends with 1 if anything is not as it must be. A line ends with the bits of all products
//                           as one number: that of all kernels that round a multiply-add once, unlike the portable
//                           ones.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "agreement.h"
#include "ggml.h"

// Those that are linked.
#define DS4_KIND(name)                          \
    namespace ds4::kernels::name {              \
    extern const Kernels kernels [[gnu::weak]]; \
    }
DS4_KIND(avx512)
DS4_KIND(avx2vnni)
DS4_KIND(avx2)
DS4_KIND(neon)

/// As ggml's, which is too large to be compiled for this alone.
float ggml_fp16_to_fp32(ggml_fp16_t half) {
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const int whole = exponent ? 1024 + fraction : fraction;
    const float size = std::ldexp(static_cast<float>(whole), exponent ? exponent - 25 : -24);
    return half >> 15 ? -size : size;
}

namespace emulated {

void Subject::expect(bool good, const char* about, const char* what) {
    if (good) return;
    failures++;
    std::printf("FAILED: %s, %s: %s\n", kernels.name, about, what);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double difference(const std::vector<float>& found, const std::vector<float>& wanted, size_t first, size_t step) {
    double apart = 0, size = 0;
    for (size_t i = first; i < wanted.size(); i += step) {
        apart += std::pow(static_cast<double>(found[i]) - static_cast<double>(wanted[i]), 2);
        size += std::pow(static_cast<double>(wanted[i]), 2);
    }
    return std::sqrt(apart / size);
}

namespace {

const Kernels* find(std::string_view name) {
    for (const Kernels* kernels : {&avx512::kernels, &avx2vnni::kernels, &avx2::kernels, &neon::kernels}) {
        if (kernels && kernels->name == name) return kernels;
    }
    return nullptr;
}

bool agrees(const char* name, const char* where) {
    const Kernels* kernels = find(name);
    if (!kernels) {
        std::printf("FAILED: no kernels of the name '%s' are linked\n", name);
        return false;
    }
    Subject subject{*kernels};
    check_matmul(subject);
    check_steps(subject);
    std::printf(
        "%s (%s): %zu formats, rows 1..%d and %d: max relative difference %.1e, of other steps %.1e, %s; %016llx\n",
        name, where, subject.formats, static_cast<int>(kMostRows), static_cast<int>(kPrefill), subject.products,
        subject.steps, subject.failures ? "FAILED" : "row bits invariant",
        static_cast<unsigned long long>(subject.bits));
    return subject.failures == 0;
}

}  // namespace
}  // namespace emulated

int main(int count, char** arguments) {
    bool good = true;
    for (int i = 1; i + 1 < count; i += 2) good &= emulated::agrees(arguments[i], arguments[i + 1]);
    return good ? 0 : 1;
}
