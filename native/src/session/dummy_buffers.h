#pragma once
// Buffers without memory, to measure graphs without loading weights or state.

#include "ggml-cpp.h"

namespace ds4::session {

/// Gives the tensors of a context addresses that are never read, so that graphs over them can be measured.
ggml_backend_buffer_ptr dummy_buffers(ggml_context* ctx);

}  // namespace ds4::session
