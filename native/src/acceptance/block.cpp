#include <algorithm>

#include "acceptance/residual.h"
#include "acceptance/rules.h"

namespace ds4::speculation {

namespace {

/// p_i of the paper from p_{i-1} and the proposal's p and q. A q of zero divides to infinity, which the 1 bounds.
double extended(double joint, double p, double q) { return p > 0 ? std::min(joint * p / q, 1.0) : 0.0; }

/// h_i of the paper. Without residual and with a joint ratio of 1 the next rows agree: nothing is lost by going on.
double threshold(double mass, double joint) {
    const double whole = mass + (1 - joint);
    return whole > 0 ? mass / whole : 1.0;
}

}  // namespace

AcceptResult by_block(TargetRows& rows, const Proposals& proposals, Rng& rng) {
    const size_t k = proposals.tokens.size();
    // The longest prefix that stands, though a shorter one may not have; and its joint ratio.
    size_t accepted = 0;
    double accepted_joint = 1;
    const auto add_chance = [&](size_t prefix, double joint, double bound) {
        if (!(rng.uniform() < bound)) return;
        accepted = prefix;
        accepted_joint = joint;
    };
    double joint = 1;
    for (size_t i = 0; i < k && joint > 0; ++i) {
        const auto p = rows.distribution(i);
        const DraftRow draft = draft_row(proposals, i);
        const int32_t token = proposals.tokens[i];
        if (i > 0) add_chance(i, joint, threshold(residual_mass(p, joint, draft), joint));
        joint = extended(joint, p[static_cast<size_t>(token)], draft.at(token));
    }
    add_chance(k, joint, joint);
    if (accepted == k) return {static_cast<int32_t>(k), rows.sample(k, rng)};
    return {static_cast<int32_t>(accepted), draw_recovered(rows, accepted, rows.distribution(accepted), accepted_joint,
                                                           draft_row(proposals, accepted), rng)};
}

}  // namespace ds4::speculation
