#pragma once
// Which implementation computes each op. The CPU's choice is made when a model is loaded, a device's when a session
// opens; graphs are built by it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ds4::kernels {

/// The values of the environment variable DS4_OPS. Unset or empty: ds4's kernels wherever there are any.
enum class RequestedKernels : uint8_t { automatic, generic, emulated, emulated64, emulated_metal };

/// Reads DS4_OPS. Throws RequestError for a value that is none of these.
RequestedKernels requested_kernels();

/// The ops that have more than one implementation.
enum class Op : uint8_t {
    matmul,  // of dense weights and experts, hyper-connections' mixes and the router's scores
    rms_norm,
    hyper_connections,
    compress,
    index_scores,
    top_rows,
    attention,
    route,
    draft_attention,
    markov_head,
    acceptance,
};
constexpr size_t kOps = 11;

/// generic: ggml's operations (for acceptance, the host's sampler). cpu: kernels/cpu. device: the device's launcher.
enum class Implementation : uint8_t { generic, cpu, device };

/// The implementation of each op on one device.
class KernelChoice {
   public:
    /// ggml's operations for every op.
    KernelChoice() = default;
    /// The fastest CPU kernels that this processor runs, for every op that they have; all generic without `own`.
    static KernelChoice of_cpu(bool own);

    Implementation operator[](Op op) const { return by_[static_cast<size_t>(op)]; }
    bool cpu(Op op) const { return (*this)[op] == Implementation::cpu; }
    /// Whether ds4's CPU kernels compute.
    bool own() const { return cpu(Op::matmul); }
    /// Has a device's own kernels compute an op; `device` names it, and must outlive this.
    void use_device(Op op, const char* device);

    /// Returns an op's implementation for display: "own (avx2)", "own (CUDA)", "ggml", or "host" for acceptance.
    std::string describe(Op op) const;
    /// A line for each op: its name, a colon and describe(op).
    std::string describe() const;

   private:
    std::array<Implementation, kOps> by_{};
    const char* variant_ = "";  // of the CPU kernels
    const char* device_ = "";
};

}  // namespace ds4::kernels
