#pragma once
// The part of the sampling policy that changes logits of single tokens: bias, then penalties.

#include <cstdint>
#include <span>
#include <vector>

#include "ds4/sampling.h"

namespace ds4::sampling {

/// Adds the bias and applies the penalties to `row` [n_vocab] in place. `counts` is scratch, zero between calls. Throws
/// RequestError when an id of the bias or of the history lies outside the row.
void adjust_logits(const SamplingPolicy& policy, std::span<const int32_t> history, std::span<float> row,
                   std::vector<int32_t>& counts);

/// Does the same for a row whose entry i is token ids[i], ignoring tokens of the bias and the history that are not
/// listed. Throws RequestError when a token is listed twice.
void adjust_candidates(const SamplingPolicy& policy, std::span<const int32_t> history, std::span<const int32_t> ids,
                       std::span<float> row, std::vector<int32_t>& counts);

}  // namespace ds4::sampling
