#pragma once
// The target's tensors by role (names and shapes: docs/model.md section 4).

#include <vector>

#include "ggml.h"
#include "model/hyperparameters.h"
#include "weights/device_map.h"

namespace ds4::weights {

struct HyperConnection {
    ggml_tensor *fn, *base, *scale;
};

struct Compressor {
    ggml_tensor *kv, *gate, *ape, *norm;
};

struct Indexer {
    ggml_tensor *query, *proj;
    Compressor compressor;
};

struct Attention {
    ggml_tensor *norm, *sinks;
    ggml_tensor *query_a, *query_a_norm, *query_b;
    ggml_tensor *kv, *kv_norm;
    ggml_tensor *output_a, *output_b;  // output_a is 2-D as in the file: (H*D/G, rank*G)
    Compressor compressor;             // all null when the layer's ratio is 0
    Indexer indexer;                   // all null unless the layer is CSA
};

struct Moe {
    ggml_tensor *norm, *router;
    ggml_tensor* bias;       // selection bias; null in hash layers
    ggml_tensor* token_map;  // tid2eid, I32 (experts_used, vocab); null in scored layers
    ggml_tensor *gate, *up, *down;
    ggml_tensor *shared_gate, *shared_up, *shared_down;
};

struct Layer {
    HyperConnection hc_attention, hc_ffn;
    Attention attention;
    Moe moe;
};

struct Weights {
    ggml_tensor *embedding, *output, *output_norm;
    HyperConnection hc_head;
    std::vector<Layer> layers;
    DeviceMap device_map;      // which device computes which of them
    bool own_kernels = false;  // whether the CPU's own kernels compute the head, and a drafter with it
};

/// Creates one tensor of `ctx` (a no_alloc context) for every role, with the file's type, shape and name; data is
/// not set. Matrices keep the file's type, whatever it is. Vectors (norms, sinks, biases, hc base and scale: F32, F16
/// or BF16 in the file) and the hc `fn` matrices (any type, some quantisers do not spare them) are created as F32: the
/// loader widens them. Without `output.weight`, `output` is the embedding itself. Reads the data of the token maps.
/// Throws FormatError for a missing tensor, a wrong shape, a type the role cannot take (a quantised vector, a token map
/// that is not I32), or a token map with an expert out of range.
Weights describe_weights(ggml_context* ctx, const gguf::File& file, const model::Hyperparameters& hp);

/// Sets the device map, and whether ds4's CPU kernels compute what is on the CPU. The embedding stays in host memory
/// where its device cannot look rows up in its type. Throws as make_device_map does.
void assign_devices(Weights& weights, const DeviceOptions& options, bool own_kernels);

/// The device index of a tensor of `weights`.
int device_index_of(const Weights& weights, const ggml_tensor* tensor);

/// Bytes a no_alloc context needs to hold the tensors of describe_weights.
size_t context_size(const model::Hyperparameters& hp);

}  // namespace ds4::weights
