#include "backend/device_list.h"

#include "backend/rpc_connection.h"
#include "ggml-backend.h"

namespace ds4::backend {
namespace {

const char* kind_of(enum ggml_backend_dev_type type) {
    switch (type) {
        case GGML_BACKEND_DEVICE_TYPE_CPU:
            return "cpu";
        case GGML_BACKEND_DEVICE_TYPE_GPU:
            return "gpu";
        case GGML_BACKEND_DEVICE_TYPE_IGPU:
            return "igpu";
        case GGML_BACKEND_DEVICE_TYPE_ACCEL:
            return "accelerator";
        default:
            return "meta";
    }
}

DeviceFacts facts_of(ggml_backend_dev_t device) {
    const ConnectionLock lock(endpoints_of({&device, 1}));
    ggml_backend_dev_props props;
    ggml_backend_dev_get_props(device, &props);
    return {props.name,
            props.description,
            kind_of(props.type),
            props.device_id ? props.device_id : "",
            props.memory_free,
            props.memory_total,
            props.caps.buffer_from_host_ptr};
}

std::vector<std::pair<std::string, std::string>> features_of(ggml_backend_reg_t reg) {
    std::vector<std::pair<std::string, std::string>> features;
    auto get = reinterpret_cast<ggml_backend_get_features_t>(
        ggml_backend_reg_get_proc_address(reg, "ggml_backend_get_features"));
    if (!get) return features;
    for (const ggml_backend_feature* f = get(reg); f->name; f++) features.emplace_back(f->name, f->value);
    return features;
}

}  // namespace

std::vector<BackendFacts> backends() {
    std::vector<BackendFacts> list;
    for (size_t i = 0; i < ggml_backend_reg_count(); i++) {
        ggml_backend_reg_t reg = ggml_backend_reg_get(i);
        BackendFacts facts{ggml_backend_reg_name(reg), features_of(reg), {}};
        for (size_t d = 0; d < ggml_backend_reg_dev_count(reg); d++) {
            facts.devices.push_back(facts_of(ggml_backend_reg_dev_get(reg, d)));
        }
        list.push_back(std::move(facts));
    }
    return list;
}

}  // namespace ds4::backend
