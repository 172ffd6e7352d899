// The arguments of Metal kernels, for the kernels and for what launches them: numbers only, so that both see one
// layout.
#pragma once

struct DraftAttentionArguments {
    int size, heads, n, capacity;
    float scale;
};
