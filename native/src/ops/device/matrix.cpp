#include <optional>

#include "ops/device/kernel_nodes.h"

namespace ds4::ops::device {
namespace {

std::optional<kernels::Element> element(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32:
            return kernels::Element::f32;
        case GGML_TYPE_F16:
            return kernels::Element::f16;
        case GGML_TYPE_BF16:
            return kernels::Element::bf16;
        case GGML_TYPE_Q8_0:
            return kernels::Element::q8_0;
        default:
            return std::nullopt;
    }
}

}  // namespace

bool readable(ggml_type type) { return element(type).has_value(); }

kernels::DeviceMatrix matrix(const ggml_tensor* t) {
    if (!t) return {};
    return {t->data, *element(t->type), static_cast<int32_t>(t->ne[0]), static_cast<int32_t>(t->ne[1])};
}

}  // namespace ds4::ops::device
