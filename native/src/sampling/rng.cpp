#include "ds4/sampling.h"

namespace ds4 {

namespace {

constexpr int kRounds = 10;
// The multipliers and Weyl increments are the generator's published constants.
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;

constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < kRounds; ++round) {
        const uint64_t product0 = kMultiplier0 * counter[0];
        const uint64_t product1 = kMultiplier1 * counter[2];
        counter = {high(product1) ^ counter[1] ^ key[0], low(product1), high(product0) ^ counter[3] ^ key[1],
                   low(product0)};
        key = {key[0] + kWeyl0, key[1] + kWeyl1};
    }
    return counter;
}

double Rng::uniform() {
    const auto block = philox4x32({low(counter_), high(counter_), 0, 0}, {low(seed_), high(seed_)});
    ++counter_;
    const uint64_t bits = (uint64_t{block[1]} << 32) | block[0];
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace ds4
