#include "acceptance/residual.h"
#include "acceptance/rules.h"

namespace ds4::speculation {

AcceptResult by_token(TargetRows& rows, const Proposals& proposals, Rng& rng) {
    const size_t k = proposals.tokens.size();
    for (size_t i = 0; i < k; ++i) {
        const auto p = rows.distribution(i);
        const DraftRow draft = draft_row(proposals, i);
        const int32_t token = proposals.tokens[i];
        // Strict, so that p = 0 rejects even for a draw of 0, and q = 0 needs no case of its own.
        if (rng.uniform() * draft.at(token) < p[static_cast<size_t>(token)]) continue;
        return {static_cast<int32_t>(i), draw_recovered(rows, i, p, 1.0, draft, rng)};
    }
    return {static_cast<int32_t>(k), rows.sample(k, rng)};
}

}  // namespace ds4::speculation
