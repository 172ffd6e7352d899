#pragma once
// The heads of a draft: the tokens in sequence, and how sure it is of each (spec/dspark.md sections 2.7, 2.8). All
// positions run in one graph.

#include "graph/draft.h"

namespace ds4::graph {

/// Has a tensor computed, and its memory, which is that of what it views, left alone by later nodes.
void keep(const ops::Build& b, ggml_tensor* t);

/// Adds candidates, tokens, q and confidence to a draft that has `hidden` and `base`. anchor [1] I32.
void markov_chain(const ops::Build& b, const DraftSource& source, const DraftShape& shape, ggml_tensor* anchor,
                  Draft& draft);

}  // namespace ds4::graph
