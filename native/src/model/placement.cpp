#include "model/placement.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "ggml-alloc.h"
#include "model/device.h"

namespace ds4::model {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kUploadChunk = 16 << 20;
constexpr size_t kAlignment = 64;

bool addresses_host_memory(ggml_backend_dev_t device) {
    ggml_backend_dev_props props;
    ggml_backend_dev_get_props(device, &props);
    return props.caps.buffer_from_host_ptr;
}

/// A tensor can be used where it lies when nothing has to be converted and the kernels' alignment holds.
bool usable_in_place(const ggml_tensor* t, const gguf::Tensor& source, ggml_backend_dev_t device) {
    const size_t align = ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(device));
    return t->type == source.type && reinterpret_cast<uintptr_t>(source.data) % std::min<size_t>(align, 32) == 0;
}

/// The mapped pages that hold the tensors of one shard.
struct Span {
    uintptr_t first = UINTPTR_MAX, last = 0;
    size_t largest = 0;

    void add(const gguf::Tensor& t) {
        const auto at = reinterpret_cast<uintptr_t>(t.data);
        first = std::min(first, at / kPage * kPage);
        last = std::max(last, at + t.nbytes);
        largest = std::max(largest, t.nbytes);
    }
};

class Placement {
   public:
    Placement(ggml_context* ctx, const gguf::File& file) : ctx_(ctx), file_(file) {}

    /// Uses the mapping for every tensor that `wanted` picks and that is usable in place on `device`.
    template <typename F>
    void map(ggml_backend_dev_t device, F wanted) {
        std::vector<Span> spans(file_.paths().size());
        std::vector<ggml_tensor*> chosen;
        for (ggml_tensor* t = ggml_get_first_tensor(ctx_); t; t = ggml_get_next_tensor(ctx_, t)) {
            const gguf::Tensor& source = *file_.find_tensor(t->name);
            if (t->data || !wanted(t) || !usable_in_place(t, source, device)) continue;
            spans[source.shard].add(source);
            chosen.push_back(t);
        }
        std::vector<ggml_backend_buffer_t> shards;
        for (const Span& span : spans) shards.push_back(span.last ? map_span(device, span) : nullptr);
        for (ggml_tensor* t : chosen) {
            const gguf::Tensor& source = *file_.find_tensor(t->name);
            check(ggml_backend_tensor_alloc(shards[source.shard], t, const_cast<void*>(source.data)));
        }
    }

    /// Allocates what has no data yet on `device` and fills it.
    void upload(ggml_backend_dev_t device, const LoadProgress& progress) {
        std::vector<ggml_tensor*> rest;
        for (ggml_tensor* t = ggml_get_first_tensor(ctx_); t; t = ggml_get_next_tensor(ctx_, t)) {
            if (!t->data) rest.push_back(t);
            total_ += t->data ? 0 : ggml_nbytes(t);
        }
        if (rest.empty()) return;
        ggml_backend_buffer_t buffer =
            ggml_backend_alloc_ctx_tensors_from_buft(ctx_, ggml_backend_dev_buffer_type(device));
        if (!buffer) {
            throw BackendError("no room on " + std::string(ggml_backend_dev_name(device)) + " for " +
                               std::to_string(total_ >> 20) + " MiB of weights");
        }
        keep(buffer);
        for (ggml_tensor* t : rest) fill(t, progress);
    }

    /// Allocates and packs those that have kernels.
    void pack(const std::vector<Packable>& wanted, int threads, const LoadProgress& progress) {
        std::vector<ggml_tensor*> chosen;
        size_t size = 0;
        for (const Packable& each : wanted) {
            const auto shape = packed_shape(each);
            if (!shape) continue;
            each.tensor->extra = &packed_.emplace_back(*shape);
            chosen.push_back(each.tensor);
            size += aligned(shape->bytes * shape->count);
        }
        if (chosen.empty()) return;
        if (size > available_memory()) {  // as it lies in the file, a model may be larger than memory
            for (ggml_tensor* t : chosen) t->extra = nullptr;
            packed_.clear();
            return;
        }
        char* at = allocate(size);
        for (ggml_tensor* t : chosen) {
            const kernels::PackedTensor& packed = *kernels::packed_of(t);
            check(ggml_backend_tensor_alloc(buffers_.back().get(), t, at));
            at += aligned(packed.bytes * packed.count);
            total_ += ggml_nbytes(t);
        }
        for (ggml_tensor* t : chosen) fill_packed(t, threads, progress);
    }

    Placed take() { return {std::move(buffers_), std::move(packed_)}; }

   private:
    ggml_backend_buffer_t map_span(ggml_backend_dev_t device, const Span& span) {
        const size_t size = (span.last - span.first + kPage - 1) / kPage * kPage;
        void* base = reinterpret_cast<void*>(span.first);
        ggml_backend_buffer_t buffer = ggml_backend_dev_buffer_from_host_ptr(device, base, size, span.largest);
        if (!buffer) throw BackendError("cannot use the mapping of '" + file_.paths()[0] + "' on this device");
        keep(buffer);
        return buffer;
    }

    void keep(ggml_backend_buffer_t buffer) {
        ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        buffers_.emplace_back(buffer);
    }

    void check(ggml_status status) {
        if (status != GGML_STATUS_SUCCESS)
            throw BackendError("the device refused a tensor of '" + file_.paths()[0] + "'");
    }

    static size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

    char* allocate(size_t size) {
        ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
        if (!buffer) throw BackendError("no memory for " + std::to_string(size >> 20) + " MiB of packed weights");
        keep(buffer);
        return static_cast<char*>(ggml_backend_buffer_get_base(buffer));
    }

    void fill_packed(ggml_tensor* t, int threads, const LoadProgress& progress) {
        const kernels::PackedTensor& packed = *kernels::packed_of(t);
        const gguf::Tensor& source = *file_.find_tensor(t->name);
        const int64_t tiles = kernels::tiles(packed.rows) * packed.count;
        std::vector<std::jthread> workers;
        for (int i = 0; i < threads; i++) {
            workers.emplace_back([&, i] { pack_tiles(source, t, tiles * i / threads, tiles * (i + 1) / threads); });
        }
        workers.clear();
        file_.release(source);
        done_ += ggml_nbytes(t);
        if (progress) progress(static_cast<double>(done_) / static_cast<double>(total_));
    }

    void fill(ggml_tensor* t, const LoadProgress& progress) {
        const gguf::Tensor& source = *file_.find_tensor(t->name);
        std::vector<float> widened;
        const char* data = static_cast<const char*>(source.data);
        if (t->type != source.type) {
            widened.resize(ggml_nelements(t));
            ggml_get_type_traits(source.type)->to_float(source.data, widened.data(), ggml_nelements(t));
            data = reinterpret_cast<const char*>(widened.data());
        }
        for (size_t at = 0; at < ggml_nbytes(t); at += kUploadChunk) {
            const size_t size = std::min(kUploadChunk, ggml_nbytes(t) - at);
            ggml_backend_tensor_set(t, data + at, at, size);
            done_ += size;
            if (progress) progress(static_cast<double>(done_) / static_cast<double>(total_));
        }
    }

    ggml_context* ctx_;
    const gguf::File& file_;
    std::vector<ggml_backend_buffer_ptr> buffers_;
    std::deque<kernels::PackedTensor> packed_;
    size_t total_ = 0, done_ = 0;
};

}  // namespace

bool own_kernels(ggml_backend_dev_t device) {
    const char* ops = std::getenv("DS4_OPS");
    return device == cpu_device() && (!ops || std::string_view(ops) != "generic");
}

Placed place_weights(ggml_context* ctx, const gguf::File& file, ggml_backend_dev_t device, int threads,
                     const std::vector<ggml_tensor*>& on_host, const std::vector<Packable>& packable,
                     const LoadProgress& progress) {
    Placement placement(ctx, file);
    placement.pack(packable, threads, progress);
    placement.map(cpu_device(), [&](const ggml_tensor* t) { return std::ranges::find(on_host, t) != on_host.end(); });
    if (addresses_host_memory(device)) placement.map(device, [](const ggml_tensor*) { return true; });
    placement.upload(device, progress);
    if (progress) progress(1);
    return placement.take();
}

}  // namespace ds4::model
