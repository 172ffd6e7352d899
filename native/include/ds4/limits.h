#pragma once
// Limits and defaults that the core, the C library and Python share.

#include <cstdint>

namespace ds4 {

/// Most rows of a verify: the anchor and kMaxRows - 1 proposals. Rings of the state have this much slack.
constexpr int64_t kMaxRows = 16;

/// Positions of a session whose caller names none, where the model was trained for that many.
constexpr int64_t kDefaultContext = 8192;

}  // namespace ds4
