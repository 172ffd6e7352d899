#pragma once
// Counts the bytes that a session moves between host and device.

#include <cstdint>

#include "ggml-backend.h"

namespace ds4::session {

/// Bytes moved so far: the inputs of graphs and the parts of outputs that are read. Copies that the scheduler makes,
/// for nodes that a device cannot compute, are not included.
struct Traffic {
    uint64_t to_device = 0, to_host = 0;

    void set(ggml_tensor* t, const void* from, size_t bytes) {
        ggml_backend_tensor_set(t, from, 0, bytes);
        to_device += bytes;
    }
    void get(const ggml_tensor* t, void* to, size_t offset, size_t bytes) {
        ggml_backend_tensor_get(t, to, offset, bytes);
        to_host += bytes;
    }
    /// Reads the whole tensor.
    void get(const ggml_tensor* t, void* to) { get(t, to, 0, ggml_nbytes(t)); }
};

}  // namespace ds4::session
