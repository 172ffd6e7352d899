#pragma once
// The arguments of Metal kernels, made of the work that a launcher is given, for the device's launcher and the
// emulator's.

#include <cstdint>
#include <string>

#include "gpu/limits.h"
#include "metal/arguments.h"

namespace ds4::kernels::metal_arguments {

/// Threads of a threadgroup, and tokens of a row that one looks at; as the kernels have them.
constexpr int kThreads = 256, kRowPiece = 8 * kThreads;

/// Sizes of a Candidate and of a Pick (gumbel_noise.h).
constexpr size_t kCandidateBytes = 16, kPickBytes = 20;

inline NoiseArguments noise_arguments(const DrawKey& key) {
    return {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32), static_cast<uint32_t>(key.counter),
            static_cast<uint32_t>(key.counter >> 32)};
}

/// Makes the arguments of the first position.
inline MarkovArguments markov_arguments(const MarkovHead& w) {
    MarkovArguments a{};
    a.key = noise_arguments(w.key);
    a.draws = w.temperature > 0;
    a.scale = a.draws ? 1 / w.temperature : 1;
    a.vocab = w.vocab;
    a.block = w.block;
    a.hidden_size = w.hidden_size;
    a.pieces = (w.vocab + kThreads - 1) / kThreads;
    a.rank = w.embedding.data ? w.embedding.columns : 0;
    a.embedding_type = static_cast<int>(w.embedding.type);
    a.confidence_columns = w.confidences ? w.confidence.columns : 0;
    a.confidence_type = static_cast<int>(w.confidence.type);
    a.has_bias = w.confidence_bias != nullptr;
    return a;
}

/// Whether W2 is read in fours, by the kernels whose names end in x4.
inline bool in_fours(const DeviceMatrix& output) {
    const size_t four = output.type == Element::f32 ? 16 : 8;
    return output.columns % 4 == 0 && reinterpret_cast<uintptr_t>(output.data) % four == 0;
}

/// The kernel of a position, by W2's type.
inline std::string markov_position_kernel(const DeviceMatrix& output) {
    static const char* const types[] = {"f32", "f16", "bf16", "q8_0"};
    const std::string name = std::string("markov_position_") + types[static_cast<int>(output.type)];
    return output.type != Element::q8_0 && in_fours(output) ? name + "x4" : name;
}

inline AcceptanceArguments acceptance_arguments(const DeviceAcceptance& w) {
    AcceptanceArguments a{};
    a.key = noise_arguments(w.key);
    a.draws = w.temperature > 0;
    a.scale = a.draws ? 1 / w.temperature : 1;
    a.vocab = w.vocab;
    a.k = w.k;
    a.has_q = w.q != nullptr;
    a.rows = w.k + 1 + (a.draws && a.has_q ? w.k : 0);
    a.pieces = (w.vocab + kRowPiece - 1) / kRowPiece;
    return a;
}

}  // namespace ds4::kernels::metal_arguments
