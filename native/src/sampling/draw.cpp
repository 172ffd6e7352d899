#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "ds4/errors.h"
#include "ds4/sampling.h"
#include "sampling/softmax.h"

namespace ds4 {

namespace {

// Blocks are skipped by their sums, which vectorise; only the block of the drawn token is scanned token by token.
constexpr size_t kBlock = 512;

std::span<const float> block_at(std::span<const float> weights, size_t begin) {
    return weights.subspan(begin, std::min(kBlock, weights.size() - begin));
}

/// Returns the first index at which the running sum exceeds `target`, or the last positive one when rounding leaves the
/// sum just short of it.
size_t walk(std::span<const float> block, double target) {
    double running = 0;
    size_t last = 0;
    for (size_t i = 0; i < block.size(); ++i) {
        if (block[i] <= 0) continue;
        last = i;
        running += block[i];
        if (target < running) break;
    }
    return last;
}

}  // namespace

int32_t draw(std::span<const float> weights, double u) {
    std::vector<double> masses;
    masses.reserve(weights.size() / kBlock + 1);
    double total = 0;
    for (size_t begin = 0; begin < weights.size(); begin += kBlock) {
        masses.push_back(sampling::sum(block_at(weights, begin)));
        total += masses.back();
    }
    if (!(total > 0) || !std::isfinite(total)) {
        throw RequestError("draw: the weights sum to " + std::to_string(total) + ", wanted a finite sum above 0");
    }
    const double target = u * total;
    double before = 0;
    size_t last_begin = 0;
    for (size_t block = 0; block < masses.size(); ++block) {
        if (masses[block] == 0) continue;
        last_begin = block * kBlock;
        if (target < before + masses[block]) {
            return static_cast<int32_t>(last_begin + walk(block_at(weights, last_begin), target - before));
        }
        before += masses[block];
    }
    // u * total was rounded up to the total: take the last token that has any weight.
    return static_cast<int32_t>(last_begin + walk(block_at(weights, last_begin), total));
}

}  // namespace ds4
