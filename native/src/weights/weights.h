#pragma once
// The weights of a target by role (names and shapes: docs/model.md section 4). Shapes are in ggml's order, ne[0]
// first.

#include <vector>

#include "ggml.h"
#include "model/hyperparameters.h"
#include "weights/device_map.h"

namespace ds4::weights {

/// Weights of one hyper-connection: fn [streams * hidden, columns], base [columns], scale [scales].
struct HyperConnection {
    ggml_tensor *fn, *base, *scale;
};

/// Weights of a compressor of ratio r: kv and gate [hidden, width], ape [width, r], norm [size]; width is
/// Hyperparameters::compress_width.
struct Compressor {
    ggml_tensor *kv, *gate, *ape, *norm;
};

/// Weights of an indexer: query [query_rank, index_heads * index_size], proj [hidden, index_heads].
struct Indexer {
    ggml_tensor *query, *proj;
    Compressor compressor;
};

/// Weights of a layer's attention.
struct Attention {
    ggml_tensor *norm, *sinks;
    ggml_tensor *query_a, *query_a_norm, *query_b;
    ggml_tensor *kv, *kv_norm;
    ggml_tensor *output_a, *output_b;  // output_a is [heads * head_size / groups, rank * groups], as in the file
    Compressor compressor;             // null members when the layer's ratio is 0
    Indexer indexer;                   // null members unless the layer is CSA
};

/// Weights of a layer's experts: gate and up [hidden, width, experts], down [width, hidden, experts], and a shared
/// expert.
struct Moe {
    ggml_tensor *norm, *router;
    ggml_tensor* bias;       // selection bias; null in hash layers
    ggml_tensor* token_map;  // tid2eid, I32 [experts_used, vocab]; null in scored layers
    ggml_tensor *gate, *up, *down;
    ggml_tensor *shared_gate, *shared_up, *shared_down;
};

/// Weights of one layer.
struct Layer {
    HyperConnection hc_attention, hc_ffn;
    Attention attention;
    Moe moe;
};

/// Weights of a target.
struct Weights {
    ggml_tensor *embedding, *output, *output_norm;
    HyperConnection hc_head;
    std::vector<Layer> layers;
    DeviceMap device_map;  // which device computes each of them

    /// Whether ds4's CPU kernels compute the head, and with it a drafter.
    bool head_uses_own_kernels() const { return device_map.uses_own_kernels(device_map.head); }
};

/// Creates one tensor of `ctx` (a no_alloc context) for every role, with the file's shape and name. No data is set.
/// Matrices keep the file's type. Vectors (norms, sinks, biases, hc base and scale) and the hc `fn` matrices are F32;
/// load_weights widens them when the file has another type. Without `output.weight`, `output` is the embedding. Reads
/// the values of vectors and token maps.
/// Throws FormatError for a missing tensor, a wrong shape, a type that the role cannot take (a quantised vector, a
/// token map that is not I32), a vector that is not finite, or a token map with an expert out of range.
Weights describe_weights(ggml_context* ctx, const gguf::File& file, const model::Hyperparameters& hp);

/// Sets the device map of `weights`. The embedding goes to host memory when its device does not support
/// get_rows for its type. Throws as make_device_map does.
void assign_devices(Weights& weights, const DeviceOptions& options, bool own_kernels);

/// Returns the device index of a tensor of `weights`.
int device_index_of(const Weights& weights, const ggml_tensor* tensor);

/// Returns the bytes of a no_alloc context for the tensors of describe_weights.
size_t context_size(const model::Hyperparameters& hp);

}  // namespace ds4::weights
