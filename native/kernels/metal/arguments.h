// The arguments of Metal kernels, for the kernels and for what launches them: numbers only, so that both see one
// layout.
#pragma once

struct DraftAttentionArguments {
    int size, heads, n, capacity;
    float scale;
};

/// A DrawKey.
struct NoiseArguments {
    uint32_t seed_low, seed_high, counter_low, counter_high;
};

/// Element's values.
enum { kElementF32, kElementF16, kElementBf16, kElementQ8 };

/// The arguments of gpu/markov.cuh. A rank of 0 is no bias, and confidence_columns of 0 no confidence.
struct MarkovArguments {
    NoiseArguments key;
    float scale;
    int draws, vocab, block, hidden_size, position, pieces;
    int rank, embedding_type;
    int confidence_columns, confidence_type, has_bias;
};

/// The arguments of gpu/acceptance.cuh.
struct AcceptanceArguments {
    NoiseArguments key;
    float scale;
    int draws, vocab, k, rows, pieces, has_q;
};
