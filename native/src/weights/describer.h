#pragma once
// Finds the tensors of a file by name, checks them, and creates their counterparts in a no_alloc context.

#include <cstdint>
#include <string>
#include <vector>

#include "weights/weights.h"

namespace ds4::weights {

using Shape = std::vector<int64_t>;

/// Creates tensors in `ctx` for tensors of `file`. Every method throws FormatError for a tensor that is missing or of
/// another shape, and for a type that the role cannot take.
class Describer {
   public:
    Describer(ggml_context* ctx, const gguf::File& file) : ctx_(ctx), file_(file) {}

    bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

    /// Creates a matrix of the file's type, which may be any float or quantised type.
    ggml_tensor* matrix(const std::string& name, const Shape& shape) const;
    /// Creates an F32 matrix, whatever float or quantised type the file has.
    ggml_tensor* f32_matrix(const std::string& name, const Shape& shape) const;
    /// Creates an F32 vector. The file has F32, F16 or BF16 and finite values.
    ggml_tensor* f32_vector(const std::string& name, const Shape& shape) const;
    /// Creates the routing table of a hash layer: I32 [used, vocab], the experts of each token. Checks the ids, because
    /// kernels would read out of bounds by wrong ones.
    ggml_tensor* token_map(const std::string& name, int64_t used, int64_t vocab, int64_t experts) const;
    /// Throws FormatError naming the first value of a tensor that is NaN or infinite.
    void require_finite(const std::string& name) const;

    /// Creates the tensors of a hyper-connection: `prefix` + "fn.weight" [wide_size, columns], "base.weight" [columns]
    /// and "scale.weight" [scales].
    HyperConnection hyper_connection(const std::string& prefix, int64_t wide_size, int64_t columns,
                                     int64_t scales) const;

   private:
    const gguf::Tensor& find(const std::string& name, const Shape& shape) const;
    void check_ids(const gguf::Tensor& found, int64_t experts) const;
    [[noreturn]] void fail_type(const gguf::Tensor& found, const std::string& expected) const;
    ggml_tensor* create(const gguf::Tensor& found, ggml_type type) const;

    ggml_context* ctx_;
    const gguf::File& file_;
};

/// Creates the tensors of layer `layer` of `hp`, whose names in the file are `prefix` + suffix.
Layer describe_layer(const Describer& in, const model::Hyperparameters& hp, int64_t layer, const std::string& prefix);

}  // namespace ds4::weights
