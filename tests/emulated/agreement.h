#pragma once
// What the kernels of a kind of processor are asked, and how they are compared with the portable ones.

#include <vector>

#include "cpu/kernels.h"

namespace ds4::kernels::portable {
extern const Kernels kernels;
}

namespace emulated {

using namespace ds4::kernels;

inline const Kernels& reference = portable::kernels;

/// Relative differences from the reference are rounding: this is a few times what was found.
constexpr double kRounding = 2e-6;

/// Rows that are computed together: 1 .. kMostRows, which is what verifying takes, and kPrefill.
constexpr int64_t kMostRows = 16, kPrefill = 40;

/// Kernels, and what was found of them.
struct Subject {
    const Kernels& kernels;
    int failures = 0;
    size_t formats = 0;
    double products = 0, steps = 0;         // the greatest differences
    uint64_t bits = 0xCBF2'9CE4'8422'2325;  // all those of the products, as one number (FNV-1a)

    /// Prints and counts what is not as it must be.
    void expect(bool good, const char* about, const char* what);
};

void check_matmul(Subject& subject);
/// Attention, and steps on rows of floats.
void check_steps(Subject& subject);

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

/// The relative difference of all values whose place is `first` and every `step`-th after it; not a number counts.
double difference(const std::vector<float>& found, const std::vector<float>& wanted, size_t first = 0, size_t step = 1);

}  // namespace emulated
