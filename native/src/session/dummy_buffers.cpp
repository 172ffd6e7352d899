#include "session/dummy_buffers.h"

#include <cstdint>

#include "backend/device.h"

namespace ds4::session {

ggml_backend_buffer_ptr dummy_buffer(ggml_context* ctx) {
    constexpr size_t kAlign = 64;
    char* base = reinterpret_cast<char*>(uintptr_t{1} << 40);
    size_t at = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        at += GGML_PAD(ggml_nbytes(t), kAlign);
    }
    ggml_backend_buffer_ptr buffer(ggml_backend_dev_buffer_from_host_ptr(backend::cpu_device(), base, at, at));
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        ggml_backend_tensor_alloc(buffer.get(), t, base);
        base += GGML_PAD(ggml_nbytes(t), kAlign);
    }
    return buffer;
}

}  // namespace ds4::session
