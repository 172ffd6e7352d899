#include "weights/loader.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "backend/device.h"
#include "ggml-alloc.h"
#include "machine/memory.h"

namespace ds4::weights {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 64;  // of packed matrices, in bytes

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Returns whether a device can use a tensor where it lies: nothing has to be converted, and the kernels' alignment
/// holds.
bool usable_in_place(const ggml_tensor* t, const gguf::Tensor& source, ggml_backend_dev_t device) {
    const size_t align = ggml_backend_buft_get_alignment(ggml_backend_dev_buffer_type(device));
    return t->type == source.type && reinterpret_cast<uintptr_t>(source.data) % std::min<size_t>(align, 32) == 0;
}

/// The mapped pages that hold the tensors of one shard.
struct MappedRange {
    uintptr_t first = UINTPTR_MAX, last = 0;
    size_t largest = 0;  // bytes of the largest tensor

    void add(const gguf::Tensor& t) {
        const auto at = reinterpret_cast<uintptr_t>(t.data);
        first = std::min(first, at / kPage * kPage);
        last = std::max(last, at + t.nbytes);
        largest = std::max(largest, t.nbytes);
    }
};

/// Returns the bytes that a tensor takes in a buffer of this type.
size_t buffer_bytes(ggml_backend_buffer_type_t type, const ggml_tensor* t) {
    return GGML_PAD(ggml_backend_buft_get_alloc_size(type, t), ggml_backend_buft_get_alignment(type));
}

/// Returns how far the tensors from `first` on fit into one buffer of the largest size that the type allows: the index
/// after the last of them, and the size of the buffer in bytes.
std::pair<size_t, size_t> next_buffer(ggml_backend_buffer_type_t type, const std::vector<ggml_tensor*>& tensors,
                                      size_t first) {
    const size_t most = ggml_backend_buft_get_max_size(type);
    size_t end = first, size = 0;
    while (end < tensors.size() && (end == first || size + buffer_bytes(type, tensors[end]) <= most)) {
        size += buffer_bytes(type, tensors[end++]);
    }
    return {end, size};
}

}  // namespace

void Loader::map(ggml_backend_dev_t device, const TensorFilter& filter) {
    std::vector<MappedRange> ranges(file_.paths().size());
    std::vector<ggml_tensor*> chosen;
    for (ggml_tensor* t : without_data(filter)) {
        const gguf::Tensor& source = source_of(t);
        if (!usable_in_place(t, source, device)) continue;
        ranges[source.shard].add(source);
        chosen.push_back(t);
    }
    std::vector<ggml_backend_buffer_t> shards;
    for (const MappedRange& range : ranges) {
        shards.push_back(range.last ? map_pages(device, range.first, range.last, range.largest) : nullptr);
    }
    for (ggml_tensor* t : chosen) {
        const gguf::Tensor& source = source_of(t);
        assign(shards[source.shard], t, const_cast<void*>(source.data));
    }
}

void Loader::pack(const std::vector<Packable>& packable, size_t reserve) {
    std::vector<std::pair<ggml_tensor*, kernels::PackedTensor>> chosen;
    size_t size = 0;
    for (const Packable& each : packable) {
        const auto shape = packed_shape(each);
        if (!shape) continue;
        if (source_of(each.tensor).packed) {
            mark_packed(each.tensor, *shape);
            continue;
        }
        chosen.emplace_back(each.tensor, *shape);
        size += aligned(shape->bytes * shape->count);
    }
    // Without packing, weights are used from the mapping, so a model may be larger than memory.
    if (chosen.empty() || size + reserve > machine::available_memory()) return;
    ggml_backend_buffer_t buffer = allocate(ggml_backend_cpu_buffer_type(), size,
                                            "no memory for " + std::to_string(size >> 20) + " MiB of packed weights");
    char* at = static_cast<char*>(ggml_backend_buffer_get_base(buffer));
    for (const auto& [t, shape] : chosen) {
        mark_packed(t, shape);
        assign(buffer, t, at);
        at += aligned(shape.bytes * shape.count);
        to_pack_.push_back(t);
    }
}

void Loader::upload(ggml_backend_dev_t device, const TensorFilter& filter) {
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device);
    const std::vector<ggml_tensor*> tensors = without_data(filter);
    for (size_t first = 0; first < tensors.size();) {
        const auto [end, size] = next_buffer(type, tensors, first);
        ggml_backend_buffer_t buffer =
            allocate(type, size,
                     "no room on " + backend::name_of(device) + " for " + std::to_string(size >> 20) +
                         " MiB of weights: keep experts on the CPU (--n-cpu-moe)");
        char* at = static_cast<char*>(ggml_backend_buffer_get_base(buffer));
        for (; first < end; at += buffer_bytes(type, tensors[first++])) {
            assign(buffer, tensors[first], at);
            to_upload_.push_back(tensors[first]);
        }
    }
}

std::vector<ggml_tensor*> Loader::without_data(const TensorFilter& filter) const {
    std::vector<ggml_tensor*> tensors;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx_); t; t = ggml_get_next_tensor(ctx_, t)) {
        if (!t->data && filter(t)) tensors.push_back(t);
    }
    return tensors;
}

ggml_backend_buffer_t Loader::map_pages(ggml_backend_dev_t device, uintptr_t first, uintptr_t last, size_t largest) {
    const size_t size = (last - first + kPage - 1) / kPage * kPage;
    ggml_backend_buffer_t buffer =
        ggml_backend_dev_buffer_from_host_ptr(device, reinterpret_cast<void*>(first), size, largest);
    if (!buffer) throw BackendError("cannot use the mapping of '" + file_.paths()[0] + "' on this device");
    return keep(buffer);
}

ggml_backend_buffer_t Loader::allocate(ggml_backend_buffer_type_t type, size_t size, const std::string& error) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(type, size);
    if (!buffer) throw BackendError(error);
    return keep(buffer);
}

ggml_backend_buffer_t Loader::keep(ggml_backend_buffer_t buffer) {
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    buffers_.emplace_back(buffer);
    return buffer;
}

void Loader::assign(ggml_backend_buffer_t buffer, ggml_tensor* tensor, void* address) {
    if (ggml_backend_tensor_alloc(buffer, tensor, address) == GGML_STATUS_SUCCESS) return;
    throw BackendError("the device refused a tensor of '" + file_.paths()[0] + "'");
}

void Loader::mark_packed(ggml_tensor* tensor, const kernels::PackedTensor& shape) {
    tensor->extra = &packed_.emplace_back(shape);
}

}  // namespace ds4::weights
