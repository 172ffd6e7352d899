#pragma once
// Acceptance of proposals (launcher.h, DeviceAcceptance) in three launches: the softmax of every row, the draw from the
// row after the accepted proposals, and the result. At temperature 0 the second launch is left out.
//
// The output has the target's distribution p. A proposal x that was drawn from q is accepted with probability
// min(1, p(x) / q(x)), so token v is proposed and accepted with probability min(p(v), q(v)). A rejection has
// probability 1 - sum min(p, q) = sum max(p - q, 0). Then the token is drawn from max(p - q, 0) divided by that sum, so
// v is the recovered token with probability max(p(v) - q(v), 0). The two add up to p(v). The same holds for each
// following row. After the last proposal the token is drawn from p. Without q, q is 1 at each proposal.
//
// All draws are independent: the purpose of a draw (Drawn: Markov head, acceptance, token) and its row are part of the
// counter of the random numbers, and every cycle has a new key.

#include "gpu/gumbel_noise.cuh"
#include "gpu/limits.h"

namespace ds4::kernels::DS4_PLATFORM {

/// The tokens of a row that one block reads.
constexpr int kRowPiece = 8 * simt::kThreads;

/// The most rows that the kernels need: p of k + 1 rows and q of k.
constexpr int kMostRows = 2 * kMostProposals + 1;

struct AcceptanceArguments {
    simt::Global<const float> p;            // [vocab, k + 1]
    simt::Global<const float> q;            // [vocab, k], or null: point masses
    simt::Global<const int32_t> proposals;  // [k]
    simt::NoiseKey key;
    float scale;  // 1 / temperature; 1 where nothing is drawn
    int draws, vocab, k;
    int rows, pieces;                    // rows that are read, and pieces of each
    simt::Global<simt::Candidate> left;  // [pieces, rows]: of p's rows, then of q's
    simt::Global<simt::Pick> picks;      // [pieces]
    simt::Global<int32_t> result;        // [2]
};

/// Reduces one piece of a row to a candidate. Block b computes piece b % pieces of row b / pieces.
template <int kWave>
DS4_KERNEL(simt::kThreads)
void acceptance_sums(AcceptanceArguments a) {
    DS4_SHARED(simt::Candidate, parts, simt::kParts);
    const int row = simt::block() / a.pieces, piece = simt::block() % a.pieces;
    const simt::Global<const float> logits =
        row <= a.k ? a.p + static_cast<int64_t>(row) * a.vocab : a.q + static_cast<int64_t>(row - a.k - 1) * a.vocab;
    simt::Candidate c = simt::no_candidate();
    for (int i = 0; i < kRowPiece; i += simt::kThreads) {
        const int token = piece * kRowPiece + i + simt::thread();
        if (token < a.vocab) c = simt::merged(c, simt::candidate(logits[token], 0, token), a.scale);
    }
    c = simt::over_block<kWave>(c, parts, simt::MergeCandidates{a.scale});
    if (simt::thread() == 0) a.left[simt::block()] = c;
}

/// The rows' candidates and the outcomes of their proposals, shared by all threads of a block.
struct Acceptance {
    simt::Shared<simt::Candidate> rows;  // [kMostRows]
    simt::Shared<int32_t> outcomes;      // [kMostProposals + 1]
    int accepted = 0;                    // how many proposals are accepted
};

DS4_DEVICE float log_p(const AcceptanceArguments& a, const Acceptance& j, int row, int token) {
    const simt::Candidate all = j.rows[row];
    return simt::log_probability(simt::row_sum(all), a.p[static_cast<int64_t>(row) * a.vocab + token], a.scale);
}

DS4_DEVICE float log_q(const AcceptanceArguments& a, const Acceptance& j, int row, int token) {
    if (row == a.k) return -simt::kInfinity;  // no proposal, so p stays whole
    if (!a.q) return token == a.proposals[row] ? 0.0f : -simt::kInfinity;
    const simt::Candidate all = j.rows[a.k + 1 + row];
    return simt::log_probability(simt::row_sum(all), a.q[static_cast<int64_t>(row) * a.vocab + token], a.scale);
}

/// The outcome of a row's proposal. It is kDamaged if the softmax of the row is not a distribution, because of NaN or
/// infinite logits. The row after the last proposal has no proposal and counts as rejected.
enum Outcome { kAccepted, kRejected, kDamaged };

DS4_DEVICE Outcome outcome(const AcceptanceArguments& a, const Acceptance& j, int row) {
    const simt::Candidate p = j.rows[row];
    if (!simt::is_distribution(simt::row_sum(p))) return kDamaged;
    if (row == a.k) return kRejected;
    const int32_t token = a.proposals[row];
    if (!a.draws) return p.token == token ? kAccepted : kRejected;
    if (a.q) {
        const simt::Candidate q = j.rows[a.k + 1 + row];
        if (!simt::is_distribution(simt::row_sum(q))) return kDamaged;
    }
    const float chance = simt::exponential(a.key, simt::kAcceptance, row, 0);
    return simt::accepted(log_p(a, j, row, token), log_q(a, j, row, token), chance) ? kAccepted : kRejected;
}

/// Merges the pieces of every row into one candidate, with one part of the block for each row, and then computes all
/// outcomes and the number of accepted proposals.
template <int kWave>
DS4_DEVICE void accept(const AcceptanceArguments& a, Acceptance& j) {
    const int lane = simt::thread() % simt::kPart;
    for (int first = 0; first < a.rows; first += simt::kParts) {
        const int row = first + simt::thread() / simt::kPart;
        simt::Candidate c = simt::no_candidate();
        for (int i = lane; row < a.rows && i < a.pieces; i += simt::kPart) {
            const simt::Candidate piece = a.left[row * a.pieces + i];
            c = simt::merged(c, piece, a.scale);
        }
        c = simt::over_part<kWave>(c, simt::MergeCandidates{a.scale});
        if (lane == 0 && row < a.rows) j.rows[row] = c;
    }
    simt::barrier();
    if (simt::thread() <= a.k) j.outcomes[simt::thread()] = outcome(a, j, simt::thread());
    simt::barrier();
    while (j.outcomes[j.accepted] == kAccepted) j.accepted++;
}

/// Draws within one piece of the row after the accepted proposals; block b takes piece b. Every block computes the
/// acceptance itself, with the same result.
template <int kWave>
DS4_KERNEL(simt::kThreads)
void acceptance_draw(AcceptanceArguments a) {
    DS4_SHARED(simt::Candidate, rows, kMostRows);
    DS4_SHARED(int32_t, outcomes, kMostProposals + 1);
    DS4_SHARED(simt::Pick, parts, simt::kParts);
    Acceptance j{rows, outcomes};
    accept<kWave>(a, j);
    simt::Pick found = simt::no_pick();
    for (int i = 0; i < kRowPiece; i += simt::kThreads) {
        const int token = simt::block() * kRowPiece + i + simt::thread();
        if (token >= a.vocab) continue;
        const float noise = simt::gumbel(a.key, simt::kToken, j.accepted, token);
        found = simt::merged(found,
                             simt::pick(log_p(a, j, j.accepted, token), log_q(a, j, j.accepted, token), noise, token));
    }
    found = simt::over_block<kWave>(found, parts, simt::MergePicks{});
    if (simt::thread() == 0) a.picks[simt::block()] = found;
}

/// Writes the result, in one block: the number of accepted proposals and the next token, or -1 for a damaged row.
template <int kWave>
DS4_KERNEL(simt::kThreads)
void acceptance_result(AcceptanceArguments a) {
    DS4_SHARED(simt::Candidate, rows, kMostRows);
    DS4_SHARED(int32_t, outcomes, kMostProposals + 1);
    DS4_SHARED(simt::Pick, parts, simt::kParts);
    Acceptance j{rows, outcomes};
    accept<kWave>(a, j);
    simt::Pick found = simt::no_pick();
    for (int i = simt::thread(); a.draws && i < a.pieces; i += simt::kThreads) {
        const simt::Pick piece = a.picks[i];
        found = simt::merged(found, piece);
    }
    found = simt::over_block<kWave>(found, parts, simt::MergePicks{});
    if (simt::thread() > 0) return;
    const simt::Candidate last = rows[j.accepted];
    a.result[0] = j.accepted;
    a.result[1] = outcomes[j.accepted] == kDamaged ? -1 : a.draws ? simt::picked(found) : last.token;
}

/// Makes all arguments except the memory of intermediate results.
inline AcceptanceArguments acceptance_arguments(const DeviceAcceptance& w) {
    AcceptanceArguments a{};
    a.p = w.p;
    a.q = w.q;
    a.proposals = w.proposals;
    a.key = simt::noise_key(w.key);
    a.draws = w.temperature > 0;
    a.scale = a.draws ? 1 / w.temperature : 1;
    a.vocab = w.vocab;
    a.k = w.k;
    a.rows = w.k + 1 + (a.draws && w.q ? w.k : 0);
    a.pieces = (w.vocab + kRowPiece - 1) / kRowPiece;
    a.result = w.result;
    return a;
}

template <int kWave, typename Device>
void launch(Device& device, const DeviceAcceptance& w) {
    require_acceptance(w);
    AcceptanceArguments a = acceptance_arguments(w);
    a.left = device.template scratch<simt::Candidate>("left", static_cast<size_t>(a.pieces) * a.rows);
    a.picks = device.template scratch<simt::Pick>("picks", a.pieces);
    device.launch("acceptance_sums", acceptance_sums<kWave>, a.rows * a.pieces, simt::kThreads, a);
    if (a.draws) device.launch("acceptance_draw", acceptance_draw<kWave>, a.pieces, simt::kThreads, a);
    device.launch("acceptance_result", acceptance_result<kWave>, 1, simt::kThreads, a);
}

}  // namespace ds4::kernels::DS4_PLATFORM
