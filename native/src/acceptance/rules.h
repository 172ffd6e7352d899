#pragma once
// One function a rule of ds4::Acceptance; shapes and ids have been checked.

#include "acceptance/rows.h"

namespace ds4::speculation {

/// Proposals one by one: x stands with probability min(1, p(x) / q(x)).
AcceptResult by_token(TargetRows& rows, const Proposals& proposals, Rng& rng);

/// A token of the target at every row, and the proposals stand while they equal it. Needs no q. For greedy policies and
/// without proposals it is what the other rules come to.
AcceptResult by_match(TargetRows& rows, const Proposals& proposals, Rng& rng);

/// The block jointly (Sun et al. 2024, "Block verification accelerates speculative decoding", arXiv 2403.10444,
/// algorithm 2); wants at least one proposal.
AcceptResult by_block(TargetRows& rows, const Proposals& proposals, Rng& rng);

}  // namespace ds4::speculation
