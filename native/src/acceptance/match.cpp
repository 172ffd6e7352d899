#include "acceptance/rules.h"

namespace ds4::speculation {

AcceptResult by_match(TargetRows& rows, const Proposals& proposals, Rng& rng) {
    size_t accepted = 0;
    int32_t token = rows.sample(0, rng);
    while (accepted < proposals.tokens.size() && token == proposals.tokens[accepted]) {
        token = rows.sample(++accepted, rng);
    }
    return {static_cast<int32_t>(accepted), token};
}

}  // namespace ds4::speculation
