// Acceptance of proposals (launcher.h, DeviceAcceptance); as gpu/acceptance.cuh, which says how it goes and why it is
// exact.

#include <metal_stdlib>

#include "metal/address_spaces.h"
#include "metal/arguments.h"

using namespace metal;

#include "metal/gumbel_threadgroup.h"

/// Tokens of a row that a threadgroup looks at; most rows that are needed.
constant constexpr int kRowPiece = 8 * kThreads, kMostProposals = 16, kMostRows = 2 * kMostProposals + 1;

/// Threadgroup g: piece g % pieces of row g / pieces.
kernel void acceptance_sums(DS4_GLOBAL(const float) p [[buffer(0)]], DS4_GLOBAL(const float) q [[buffer(1)]],
                            DS4_GLOBAL(Candidate) left [[buffer(2)]], constant AcceptanceArguments& a [[buffer(3)]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            uint group_index [[threadgroup_position_in_grid]]) {
    DS4_SHARED(Candidate, parts, kParts);
    const int index = int(thread_index), group = int(group_index);
    const int row = group / a.pieces, piece = group % a.pieces;
    Candidate c = no_candidate();
    for (int i = 0; i < kRowPiece; i += kThreads) {
        const int token = piece * kRowPiece + i + index;
        if (token >= a.vocab) continue;
        float logit;
        if (row <= a.k) {
            logit = p[row * a.vocab + token];
        } else {
            logit = q[(row - a.k - 1) * a.vocab + token];
        }
        c = merged(c, candidate(logit, 0, token), a.scale);
    }
    const MergeCandidates merge = {a.scale};
    c = over_block(c, parts, index, merge);
    if (index == 0) left[group] = c;
}

/// The logits and proposals, and what all threads of a threadgroup know of them.
struct Acceptance {
    DS4_GLOBAL(const float) p;
    DS4_GLOBAL(const float) q;
    DS4_GLOBAL(const int) proposals;
    DS4_THREADGROUP(Candidate) rows;  // [kMostRows]
    DS4_THREADGROUP(int) outcomes;    // [kMostProposals + 1]
};

inline float log_p(Acceptance j, constant AcceptanceArguments& a, int row, int token) {
    const Candidate all = j.rows[row];
    return log_probability(row_sum(all), j.p[row * a.vocab + token], a.scale);
}

inline float log_q(Acceptance j, constant AcceptanceArguments& a, int row, int token) {
    if (row == a.k) return -kInfinity;  // nothing to take off
    if (!a.has_q) {
        const int proposal = j.proposals[row];
        return token == proposal ? 0.0f : -kInfinity;
    }
    const Candidate all = j.rows[a.k + 1 + row];
    return log_probability(row_sum(all), j.q[row * a.vocab + token], a.scale);
}

enum Outcome { kAccepted, kRejected, kDamaged };

inline Outcome outcome(Acceptance j, constant AcceptanceArguments& a, int row) {
    const Candidate p = j.rows[row];
    if (!is_distribution(row_sum(p))) return kDamaged;
    if (row == a.k) return kRejected;
    const int token = j.proposals[row];
    if (!a.draws) return p.token == token ? kAccepted : kRejected;
    if (a.has_q) {
        const Candidate q = j.rows[a.k + 1 + row];
        if (!is_distribution(row_sum(q))) return kDamaged;
    }
    const float chance = exponential(noise_key(a.key), kAcceptance, row, 0);
    return accepted(log_p(j, a, row, token), log_q(j, a, row, token), chance) ? kAccepted : kRejected;
}

/// Every row's pieces as one candidate, each simdgroup a row at a time; then all outcomes at once. Returns how many
/// proposals are accepted.
inline int accept(Acceptance j, DS4_GLOBAL(const Candidate) left, constant AcceptanceArguments& a, int index) {
    const int lane = index % kPart;
    const MergeCandidates merge = {a.scale};
    for (int first = 0; first < a.rows; first += kParts) {
        const int row = first + index / kPart;
        Candidate c = no_candidate();
        for (int i = lane; row < a.rows && i < a.pieces; i += kPart) {
            const Candidate piece = left[row * a.pieces + i];
            c = merged(c, piece, a.scale);
        }
        c = over_part(c, merge);
        if (lane == 0 && row < a.rows) j.rows[row] = c;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (index <= a.k) j.outcomes[index] = outcome(j, a, index);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int accepted = 0;
    while (j.outcomes[accepted] == kAccepted) accepted++;
    return accepted;
}

/// Threadgroup g: piece g of the row after the accepted proposals. Each decides by itself, with the same result.
kernel void acceptance_draw(DS4_GLOBAL(const float) p [[buffer(0)]], DS4_GLOBAL(const float) q [[buffer(1)]],
                            DS4_GLOBAL(const int) proposals [[buffer(2)]],
                            DS4_GLOBAL(const Candidate) left [[buffer(3)]], DS4_GLOBAL(Pick) picks [[buffer(4)]],
                            constant AcceptanceArguments& a [[buffer(5)]],
                            uint thread_index [[thread_index_in_threadgroup]],
                            uint group [[threadgroup_position_in_grid]]) {
    DS4_SHARED(Candidate, rows, kMostRows);
    DS4_SHARED(int, outcomes, kMostProposals + 1);
    DS4_SHARED(Pick, parts, kParts);
    const int index = int(thread_index);
    const Acceptance j = {p, q, proposals, rows, outcomes};
    const int accepted = accept(j, left, a, index);
    Pick found = no_pick();
    for (int i = 0; i < kRowPiece; i += kThreads) {
        const int token = int(group) * kRowPiece + i + index;
        if (token >= a.vocab) continue;
        const float noise = gumbel(noise_key(a.key), kToken, accepted, token);
        found = merged(found, pick(log_p(j, a, accepted, token), log_q(j, a, accepted, token), noise, token));
    }
    found = over_block(found, parts, index, MergePicks());
    if (index == 0) picks[group] = found;
}

/// Writes the result, in one threadgroup. A damaged row is followed by no token: -1.
kernel void acceptance_result(DS4_GLOBAL(const float) p [[buffer(0)]], DS4_GLOBAL(const float) q [[buffer(1)]],
                              DS4_GLOBAL(const int) proposals [[buffer(2)]],
                              DS4_GLOBAL(const Candidate) left [[buffer(3)]],
                              DS4_GLOBAL(const Pick) picks [[buffer(4)]], DS4_GLOBAL(int) result [[buffer(5)]],
                              constant AcceptanceArguments& a [[buffer(6)]],
                              uint thread_index [[thread_index_in_threadgroup]]) {
    DS4_SHARED(Candidate, rows, kMostRows);
    DS4_SHARED(int, outcomes, kMostProposals + 1);
    DS4_SHARED(Pick, parts, kParts);
    const int index = int(thread_index);
    const Acceptance j = {p, q, proposals, rows, outcomes};
    const int accepted = accept(j, left, a, index);
    Pick found = no_pick();
    for (int i = index; a.draws && i < a.pieces; i += kThreads) {
        const Pick piece = picks[i];
        found = merged(found, piece);
    }
    found = over_block(found, parts, index, MergePicks());
    if (index > 0) return;
    const Candidate last = rows[accepted];
    result[0] = accepted;
    if (outcomes[accepted] == kDamaged) {
        result[1] = -1;
    } else {
        result[1] = a.draws ? picked(found) : last.token;
    }
}
