#include "session/device_kernels.h"

#include <algorithm>
#include <bit>

#include "backend/device.h"
#include "drafter/weights.h"
#include "ggml-alloc.h"
#include "ops/device/kernel_nodes.h"

namespace ds4::session {
namespace {

constexpr int kMostTensors = 8;

/// Whether a device's kernels can reach a tensor.
bool lies_on(ggml_backend_dev_t device, const ggml_tensor* t) {
    const ggml_backend_buffer_t buffer = t->view_src ? t->view_src->buffer : t->buffer;
    if (device == backend::cpu_device()) return buffer && ggml_backend_buffer_is_host(buffer);
    return buffer && ggml_backend_buft_get_device(ggml_backend_buffer_get_type(buffer)) == device;
}

bool chains(ggml_backend_dev_t device, const drafter::Weights& w, const ggml_tensor* output) {
    for (const ggml_tensor* t : {w.markov_embedding, w.markov_output, w.confidence}) {
        if (t && (!lies_on(device, t) || !ops::device::readable(t->type))) return false;
    }
    return lies_on(device, output);
}

int32_t* ints(const ggml_tensor* t) { return static_cast<int32_t*>(t->data); }
float* floats(const ggml_tensor* t) { return t ? static_cast<float*>(t->data) : nullptr; }

}  // namespace

std::unique_ptr<DeviceKernels> DeviceKernels::open(const Model& model, const Drafter* drafter, ggml_type kv_type,
                                                   Traffic& traffic) {
    std::unique_ptr<DeviceKernels> found(new DeviceKernels(model, drafter, traffic));
    found->launcher_ = kernels::open_launcher(found->device_, kernels::requested_kernels());
    if (!found->launcher_) return nullptr;
    const ggml_tensor* output = model.weights().output;
    found->steps_.acceptance = lies_on(found->device_, output);
    if (drafter) {
        const int64_t head_size = drafter->hyperparameters().stages.head_size;
        const drafter::Weights& w = drafter->weights();
        found->steps_.attention =
            lies_on(found->device_, w.stages.front().attention.sinks) && ops::device::attends(head_size, kv_type);
        found->steps_.chain = chains(found->device_, w, output);
    }
    found->describe(model.hyperparameters().vocab);
    return found;
}

DeviceKernels::DeviceKernels(const Model& model, const Drafter* drafter, Traffic& traffic)
    : device_(model.device()), drafter_(drafter), traffic_(traffic) {}

void DeviceKernels::describe(int64_t vocab) {
    ctx_.reset(ggml_init({kMostTensors * ggml_tensor_overhead(), nullptr, true}));
    if (!ctx_) throw BackendError("no memory for the description of what kernels leave on a device");
    const auto make = [&](ggml_type type, int64_t n0, int64_t n1 = 1) {
        return ggml_new_tensor_2d(ctx_.get(), type, n0, n1);
    };
    proposals_ = make(GGML_TYPE_I32, state::kMaxRows);
    accept_result_ = make(GGML_TYPE_I32, 2);
    kept_row_ = make(GGML_TYPE_F32, vocab);
    if (steps_.chain) {
        const drafter::Hyperparameters& hp = drafter_->hyperparameters();
        anchor_ = make(GGML_TYPE_I32, 1);
        logits_ = make(GGML_TYPE_F32, vocab, hp.block);
        chained_ = make(GGML_TYPE_I32, hp.block, hp.confidence ? 3 : 2);
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx_.get(), ggml_backend_dev_buffer_type(device_)));
    if (!buffer_) throw BackendError("no room on " + std::string(name()) + " for what its own kernels leave there");
}

const char* DeviceKernels::name() const {
    if (device_ == backend::cpu_device()) return "emulated";
    return ggml_backend_reg_name(ggml_backend_dev_backend_reg(device_));
}

void DeviceKernels::add_to(kernels::KernelChoice& choice) const {
    if (steps_.attention) choice.use_device(kernels::Op::draft_attention, name());
    if (steps_.chain) choice.use_device(kernels::Op::markov_head, name());
    if (steps_.acceptance) choice.use_device(kernels::Op::acceptance, name());
}

void DeviceKernels::require_here(const ggml_tensor* t, const char* what) const {
    if (lies_on(device_, t)) return;
    throw BackendError(std::string(what) + " were computed elsewhere than on " + ggml_backend_dev_name(device_) +
                       ", where its own kernels read them: set DS4_OPS=generic");
}

Chained DeviceKernels::chain(const graph::Draft& draft, int32_t anchor, float temperature, kernels::DrawKey key) {
    require_here(draft.base, "the logits of a draft");
    require_here(draft.hidden, "the hidden rows of a draft");
    traffic_.set(anchor_, &anchor, sizeof anchor);
    const drafter::Weights& w = drafter_->weights();
    kernels::MarkovHead work{};
    work.base = floats(draft.base);
    work.anchor = ints(anchor_);
    work.embedding = ops::device::matrix(w.markov_embedding);
    work.output = ops::device::matrix(w.markov_output);
    work.hidden = floats(draft.hidden);
    work.confidence = ops::device::matrix(w.confidence);
    work.confidence_bias = floats(w.confidence_bias);
    work.temperature = temperature;
    work.key = key;
    work.vocab = static_cast<int32_t>(draft.base->ne[0]);
    work.block = static_cast<int32_t>(draft.base->ne[1]);
    work.hidden_size = static_cast<int32_t>(draft.hidden->ne[0]);
    work.tokens = ints(chained_);
    work.logits = floats(logits_);
    work.log_sum = floats(chained_) + work.block;
    work.confidences = chained_->ne[1] > 2 ? work.log_sum + work.block : nullptr;
    launcher_->run(work);
    launcher_->synchronize();
    return read_chained();
}

Chained DeviceKernels::read_chained() {
    std::vector<int32_t> all(ggml_nelements(chained_));
    traffic_.get(chained_, all.data());
    const auto row = [&](int64_t i) { return all.begin() + i * chained_->ne[0]; };
    const auto row_of_floats = [&](int64_t i) {
        std::vector<float> found(chained_->ne[0]);
        std::transform(row(i), row(i + 1), found.begin(), [](int32_t bits) { return std::bit_cast<float>(bits); });
        return found;
    };
    Chained found{{row(0), row(1)}, row_of_floats(1), {}};
    if (chained_->ne[1] > 2) found.confidences = row_of_floats(2);
    return found;
}

void DeviceKernels::accept(const ggml_tensor* rows, std::span<const int32_t> proposals, bool drawn, float temperature,
                           kernels::DrawKey key) {
    require_here(rows, "the logits of a verify");
    if (!proposals.empty()) traffic_.set(proposals_, proposals.data(), proposals.size_bytes());
    kernels::DeviceAcceptance work{};
    work.p = floats(rows);
    work.q = drawn ? floats(logits_) : nullptr;
    work.proposals = ints(proposals_);
    work.temperature = temperature;
    work.key = key;
    work.vocab = static_cast<int32_t>(rows->ne[0]);
    work.k = static_cast<int32_t>(proposals.size());
    work.result = ints(accept_result_);
    launcher_->run(work);
    launcher_->synchronize();
}

void DeviceKernels::keep_row(const ggml_tensor* rows, int64_t row) {
    ggml_tensor from = *kept_row_;  // a view: copies want tensors of one layout
    from.buffer = rows->buffer;
    from.data = static_cast<char*>(rows->data) + static_cast<size_t>(row) * rows->nb[1];
    ggml_backend_tensor_copy(&from, kept_row_);
}

}  // namespace ds4::session
