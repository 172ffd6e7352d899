#include "weights/loading.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <thread>

#include "backend/device.h"
#include "ggml-alloc.h"
#include "kernel_choice.h"
#include "machine/memory.h"

namespace ds4::weights {
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

/// Rows can be packed for the kernels, but what a file has packed is of no use without them.
void require_kernels(ggml_context* ctx, const gguf::File& file, const DeviceOf& device_of,
                     const std::vector<Packable>& packable) {
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (file.find_tensor(t->name)->packed == 0) continue;
        if (!packable.empty() && device_of(t) == backend::cpu_device()) continue;
        throw RequestError(file.paths()[0] + ": is packed for the CPU's own kernels, which do not compute '" + t->name +
                           "' here (device " + backend::name_of(device_of(t)) +
                           ", --no-repack, or DS4_OPS=generic); give the file that it was packed from");
    }
    require_packed_alike(file, packable);
}

/// Several tensors for one device, as few buffers as it allows.
struct Upload {
    ggml_backend_buffer_type_t type;
    std::vector<ggml_tensor*> tensors = {};

    size_t bytes(const ggml_tensor* t) const {
        return GGML_PAD(ggml_backend_buft_get_alloc_size(type, t), ggml_backend_buft_get_alignment(type));
    }
    /// Where the tensors from `first` on that share a buffer end, and its size.
    std::pair<size_t, size_t> share(size_t first) const {
        const size_t most = ggml_backend_buft_get_max_size(type);
        size_t end = first, size = 0;
        while (end < tensors.size() && (end == first || size + bytes(tensors[end]) <= most)) {
            size += bytes(tensors[end++]);
        }
        return {end, size};
    }
};

/// Gives the tensors of a context their data: packed, mapped or uploaded.
class Loader {
   public:
    Loader(ggml_context* ctx, const gguf::File& file) : ctx_(ctx), file_(file) {}

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

    /// Marks those that lie packed in the file, and gives memory to the others that have kernels, where it suffices.
    void pack(const std::vector<Packable>& wanted, size_t reserve) {
        std::vector<std::pair<ggml_tensor*, kernels::PackedTensor>> chosen;
        size_t size = 0;
        for (const Packable& each : wanted) {
            const auto shape = packed_shape(each);
            if (!shape) continue;
            if (file_.find_tensor(each.tensor->name)->packed) {
                mark(each.tensor, *shape);
                continue;
            }
            chosen.emplace_back(each.tensor, *shape);
            size += aligned(shape->bytes * shape->count);
        }
        // As it lies in the file, a model may be larger than memory.
        if (chosen.empty() || size + reserve > machine::available_memory()) return;
        char* at = allocate(size);
        for (const auto& [t, shape] : chosen) {
            mark(t, shape);
            check(ggml_backend_tensor_alloc(buffers_.back().get(), t, at));
            at += aligned(shape.bytes * shape.count);
            to_pack_.push_back(t);
        }
    }

    /// Allocates memory on `device` for the tensors that `wanted` picks and that have no data yet.
    template <typename F>
    void upload(ggml_backend_dev_t device, F wanted) {
        Upload upload{ggml_backend_dev_buffer_type(device)};
        for (ggml_tensor* t = ggml_get_first_tensor(ctx_); t; t = ggml_get_next_tensor(ctx_, t)) {
            if (!t->data && wanted(t)) upload.tensors.push_back(t);
        }
        for (size_t first = 0; first < upload.tensors.size();) {
            const auto [end, size] = upload.share(first);
            ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(upload.type, size);
            if (!buffer) {
                throw BackendError("no room on " + backend::name_of(device) + " for " + std::to_string(size >> 20) +
                                   " MiB of weights: keep experts on the CPU (--n-cpu-moe)");
            }
            keep(buffer);
            char* at = static_cast<char*>(ggml_backend_buffer_get_base(buffer));
            for (; first < end; at += upload.bytes(upload.tensors[first++])) {
                check(ggml_backend_tensor_alloc(buffer, upload.tensors[first], at));
                to_upload_.push_back(upload.tensors[first]);
            }
        }
    }

    /// Fills the memory that was given out.
    void fill(int threads, const LoadProgress& progress) {
        for (const ggml_tensor* t : to_pack_) total_ += ggml_nbytes(t);
        for (const ggml_tensor* t : to_upload_) total_ += ggml_nbytes(t);
        for (ggml_tensor* t : to_pack_) fill_packed(t, threads, progress);
        for (ggml_tensor* t : to_upload_) fill_uploaded(t, progress);
    }

    LoadedWeights take() { return {std::move(buffers_), std::move(packed_)}; }

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

    void mark(ggml_tensor* t, const kernels::PackedTensor& shape) { t->extra = &packed_.emplace_back(shape); }

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

    void fill_uploaded(ggml_tensor* t, const LoadProgress& progress) {
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
    std::vector<ggml_tensor*> to_pack_, to_upload_;
    size_t total_ = 0, done_ = 0;
};

}  // namespace

bool own_kernels() { return kernels::requested_kernels() != kernels::RequestedKernels::generic; }

LoadedWeights load_weights(ggml_context* ctx, const gguf::File& file, const DeviceOf& device_of, int threads,
                           const std::vector<Packable>& packable, size_t reserve, const LoadProgress& progress) {
    require_kernels(ctx, file, device_of, packable);
    Loader loader(ctx, file);
    loader.pack(packable, reserve);
    std::set<ggml_backend_dev_t> devices;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) devices.insert(device_of(t));
    for (ggml_backend_dev_t device : devices) {
        const auto here = [&](const ggml_tensor* t) { return device_of(t) == device; };
        if (addresses_host_memory(device)) loader.map(device, here);
        loader.upload(device, here);
    }
    loader.fill(threads, progress);
    if (progress) progress(1);
    return loader.take();
}

}  // namespace ds4::weights
