#pragma once
// The steps of load_weights: each tensor gets memory by exactly one of map, pack and upload, and fill writes the data.

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ds4/model.h"
#include "gguf/gguf.h"
#include "weights/loading.h"
#include "weights/packing.h"

namespace ds4::weights {

/// Selects tensors of the loader's context.
using TensorFilter = std::function<bool(const ggml_tensor*)>;

/// Gives the tensors of a no_alloc context the data that a file has for them by name. The methods throw BackendError
/// when a device refuses memory or a tensor.
class Loader {
   public:
    Loader(ggml_context* ctx, const gguf::File& file) : ctx_(ctx), file_(file) {}

    /// Uses the file's mapping, without a copy, for each tensor without data that `filter` selects and that `device`
    /// can use where it lies: of the file's type, and aligned.
    void map(ggml_backend_dev_t device, const TensorFilter& filter);

    /// Marks the tensors that lie packed in the file, and allocates host memory for the other packable tensors whose
    /// types have kernels. Allocates nothing when less than `reserve` bytes of host memory would be left.
    void pack(const std::vector<Packable>& packable, size_t reserve);

    /// Allocates memory on `device` for each tensor without data that `filter` selects.
    void upload(ggml_backend_dev_t device, const TensorFilter& filter);

    /// Packs and uploads into the memory that `pack` and `upload` allocated, packing with `threads` threads.
    void fill(int threads, const LoadProgress& progress);

    /// Moves the buffers and the descriptions of packed tensors out of the loader.
    LoadedWeights take() { return {std::move(buffers_), std::move(packed_)}; }

   private:
    std::vector<ggml_tensor*> without_data(const TensorFilter& filter) const;
    const gguf::Tensor& source_of(const ggml_tensor* tensor) const { return *file_.find_tensor(tensor->name); }
    ggml_backend_buffer_t map_pages(ggml_backend_dev_t device, uintptr_t first, uintptr_t last, size_t largest);
    ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, size_t size, const std::string& error);
    ggml_backend_buffer_t keep(ggml_backend_buffer_t buffer);
    void assign(ggml_backend_buffer_t buffer, ggml_tensor* tensor, void* address);
    void mark_packed(ggml_tensor* tensor, const kernels::PackedTensor& shape);
    void fill_packed(ggml_tensor* tensor, int threads, const LoadProgress& progress);
    void fill_uploaded(ggml_tensor* tensor, const LoadProgress& progress);
    void report(size_t bytes, const LoadProgress& progress);

    ggml_context* ctx_;
    const gguf::File& file_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::deque<kernels::PackedTensor> packed_;  // a deque, because tensors point to its elements
    std::vector<ggml_tensor*> to_pack_, to_upload_;
    size_t total_ = 0, done_ = 0;  // bytes to write, and bytes written
};

}  // namespace ds4::weights
