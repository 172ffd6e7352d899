#pragma once
// Graphs measured without the memory of what they read.

#include "ggml-cpp.h"

namespace ds4::session {

/// Gives tensors addresses that are never read, so that a graph can be measured without its weights and state.
ggml_backend_buffer_ptr dummy_buffer(ggml_context* ctx);

}  // namespace ds4::session
