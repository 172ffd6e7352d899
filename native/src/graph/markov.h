#pragma once
// The heads of a draft: the tokens in sequence, and how sure it is of each (docs/dspark.md sections 2.7, 2.8). All
// positions run in one graph.

#include "graph/draft.h"

namespace ds4::graph {

/// Makes a tensor, and the tensor that it views, an output: it is computed and later nodes do not reuse its memory.
void keep(const ops::Build& b, ggml_tensor* t);

/// Adds candidates, tokens, q and confidence to a draft that has `hidden` and `base`. anchor [1] I32.
void markov_chain(const ops::Build& b, const DraftSource& source, const DraftShape& shape, ggml_tensor* anchor,
                  Draft& draft);

}  // namespace ds4::graph
