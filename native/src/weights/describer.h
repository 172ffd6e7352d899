#pragma once
// Finds tensors by name, checks them, and creates their counterparts in a no_alloc context.

#include <string>
#include <vector>

#include "weights/weights.h"

namespace ds4::weights {

using Shape = std::vector<int64_t>;

/// Every method throws FormatError for a tensor that is missing or of another shape, and for a type that its role
/// cannot take.
class Describer {
   public:
    Describer(ggml_context* ctx, const gguf::File& file) : ctx_(ctx), file_(file) {}

    bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

    /// A matrix, as it is in the file: of any float or quantised type.
    ggml_tensor* matrix(const std::string& name, const Shape& shape) const;
    /// A matrix that is computed with in F32, whatever the file holds.
    ggml_tensor* f32_matrix(const std::string& name, const Shape& shape) const;
    /// A vector (F32, F16 or BF16 in the file) that is computed with in F32. Its values must be finite.
    ggml_tensor* f32_vector(const std::string& name, const Shape& shape) const;
    /// The routing table of a hash layer. Its ids are checked here, since a kernel would read out of bounds by them.
    ggml_tensor* token_map(const std::string& name, int64_t used, int64_t vocab, int64_t experts) const;
    /// Throws FormatError naming the first value of a tensor that is NaN or infinite.
    void require_finite(const std::string& name) const;

    /// The hyper-connection whose tensors are `prefix` + "fn.weight" and so on, with `columns` of fn and `scales`.
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

/// The tensors of layer `layer` of `hp`, which are called `prefix` + suffix.
Layer describe_layer(const Describer& in, const model::Hyperparameters& hp, int64_t layer, const std::string& prefix);

}  // namespace ds4::weights
