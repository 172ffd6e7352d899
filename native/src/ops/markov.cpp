#include "ops/markov.h"

namespace ds4::ops {

// A whole vocabulary is bound by reading W2, one row of activations at a time, which ggml's product does as well.
MarkovChain markov_chain(const Build& b, const MarkovInput& in) {
    return b.own_kernels && in.draft_vocab ? cpu::markov_chain(b, in) : generic::markov_chain(b, in);
}

}  // namespace ds4::ops
