#include <algorithm>
#include <thread>

#include "weights/loader.h"

namespace ds4::weights {
namespace {

constexpr size_t kUploadChunk = 16 << 20;  // bytes between two reports of progress

}  // namespace

void Loader::fill(int threads, const LoadProgress& progress) {
    for (const ggml_tensor* t : to_pack_) total_ += ggml_nbytes(t);
    for (const ggml_tensor* t : to_upload_) total_ += ggml_nbytes(t);
    for (ggml_tensor* t : to_pack_) fill_packed(t, threads, progress);
    for (ggml_tensor* t : to_upload_) fill_uploaded(t, progress);
}

void Loader::fill_packed(ggml_tensor* tensor, int threads, const LoadProgress& progress) {
    const kernels::PackedTensor& packed = *kernels::packed_of(tensor);
    const gguf::Tensor& source = source_of(tensor);
    const int64_t tiles = kernels::tiles(packed.rows) * packed.count;
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; i++) {
        workers.emplace_back([&, i] { pack_tiles(source, tensor, tiles * i / threads, tiles * (i + 1) / threads); });
    }
    workers.clear();  // joins the threads
    file_.release(source);
    report(ggml_nbytes(tensor), progress);
}

void Loader::fill_uploaded(ggml_tensor* tensor, const LoadProgress& progress) {
    const gguf::Tensor& source = source_of(tensor);
    std::vector<float> widened;
    const char* data = static_cast<const char*>(source.data);
    if (tensor->type != source.type) {
        widened.resize(ggml_nelements(tensor));
        ggml_get_type_traits(source.type)->to_float(source.data, widened.data(), ggml_nelements(tensor));
        data = reinterpret_cast<const char*>(widened.data());
    }
    for (size_t at = 0; at < ggml_nbytes(tensor); at += kUploadChunk) {
        const size_t size = std::min(kUploadChunk, ggml_nbytes(tensor) - at);
        ggml_backend_tensor_set(tensor, data + at, at, size);
        report(size, progress);
    }
}

void Loader::report(size_t bytes, const LoadProgress& progress) {
    done_ += bytes;
    if (progress) progress(static_cast<double>(done_) / static_cast<double>(total_));
}

}  // namespace ds4::weights
