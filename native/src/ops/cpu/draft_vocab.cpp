#include "ops/cpu/draft_vocab.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

constexpr size_t kBlock = 32;
constexpr float kLeast = -std::numeric_limits<float>::infinity();

/// The maximum of the block at `begin`, shorter at the row's end; a NaN is not greater than anything.
float maximum(std::span<const float> row, size_t begin) {
    std::array<float, kBlock> most;
    const auto end = std::copy_n(row.begin() + begin, std::min(kBlock, row.size() - begin), most.begin());
    std::fill(end, most.end(), kLeast);
    for (float& x : most) x = x > kLeast ? x : kLeast;
    for (size_t half = kBlock / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) most[i] = most[i + half] > most[i] ? most[i + half] : most[i];
    }
    return most[0];
}

/// A value that at least `count` of the row reach: the maximum of so many blocks does.
float lower_bound(std::span<const float> maxima, size_t count) {
    if (maxima.size() < count) return kLeast;
    thread_local std::vector<float> order;
    order.assign(maxima.begin(), maxima.end());
    std::nth_element(order.begin(), order.begin() + count - 1, order.end(), std::greater());
    return order[count - 1];
}

/// The indices of the values that reach the bound, ascending, with NaNs between them.
void reaching(std::span<const float> row, std::span<const float> maxima, float bound, std::vector<int32_t>& found) {
    found.clear();
    for (size_t i = 0; i < maxima.size(); i++) {
        if (maxima[i] < bound) continue;
        for (size_t k = i * kBlock; k < std::min((i + 1) * kBlock, row.size()); k++) {
            if (!(row[k] < bound)) found.push_back(static_cast<int32_t>(k));
        }
    }
}

}  // namespace

void likeliest_tokens(std::span<const float> row, std::span<int32_t> out) {
    thread_local std::vector<float> maxima, values;
    thread_local std::vector<int32_t> found;
    maxima.clear();
    for (size_t i = 0; i < row.size(); i += kBlock) maxima.push_back(maximum(row, i));
    reaching(row, maxima, lower_bound(maxima, out.size()), found);
    values.resize(found.size());
    std::ranges::transform(found, values.begin(), [row](int32_t k) { return row[k]; });
    greatest(values.data(), std::ssize(values), out.data(), std::ssize(out));
    for (int32_t& k : out) k = found[k];
}

}  // namespace ds4::ops::cpu
