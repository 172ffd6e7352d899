#pragma once
// What is left of the target's distribution once the drafter's is taken off: max(scale p - q, 0).

#include <span>

#include "acceptance/rows.h"

namespace ds4::speculation {

/// Sum of the residual, in double: one pass over p, and over a dense q. Throws RequestError when q holds a number
/// that is not finite.
double residual_mass(std::span<const float> p, double scale, const DraftRow& draft);

/// Draws the token after a rejection from the residual of row i, whose distribution `p` is used up. A mass of at most
/// 1e-8 is rounding noise of a rejection that had no greater probability: then the draw is from p itself. Throws
/// RequestError as residual_mass() does.
int32_t draw_recovered(TargetRows& rows, size_t row, std::span<float> p, double scale, const DraftRow& draft, Rng& rng);

}  // namespace ds4::speculation
