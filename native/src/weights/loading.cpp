#include "weights/loading.h"

#include <set>

#include "backend/device.h"
#include "kernel_choice.h"
#include "weights/loader.h"

namespace ds4::weights {
namespace {

bool addresses_host_memory(ggml_backend_dev_t device) {
    ggml_backend_dev_props props;
    ggml_backend_dev_get_props(device, &props);
    return props.caps.buffer_from_host_ptr;
}

/// Throws RequestError when a tensor is packed in the file and ds4's CPU kernels do not compute it: nothing else can
/// read packed tensors.
void require_kernels(ggml_context* ctx, const gguf::File& file, const DeviceOf& device_of,
                     const std::vector<Packable>& packable) {
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if (file.find_tensor(t->name)->packed == 0) continue;
        if (!packable.empty() && device_of(t) == backend::cpu_device()) continue;
        throw RequestError(file.paths()[0] + ": is packed for the CPU's own kernels, which do not compute '" + t->name +
                           "' here (device " + backend::name_of(device_of(t)) +
                           ", --no-repack, or DS4_OPS=generic); give the file that it was packed from");
    }
    require_same_packing(file, packable);
}

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
