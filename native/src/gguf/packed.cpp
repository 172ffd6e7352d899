#include "gguf/packed.h"

#include <algorithm>
#include <unordered_map>

#include "cpu/layout.h"
#include "cpu/packing.h"
#include "gguf/checked.h"
#include "gguf/tensors.h"
#include "gguf/text.h"

namespace ds4::gguf {

namespace {

constexpr const char* kArchitecture = "general.architecture";
constexpr const char* kAgain = "; pack the original again with deepseek4-quantize --pack";
constexpr uintptr_t kAlignment = 64;
constexpr uint64_t kMaxPerByte = 4;  // values; every type that can be packed has at least two bits a value

using Names = std::vector<std::string>;
using Numbers = std::vector<int64_t>;

/// Removes the suffix for packed files from the architecture. Returns whether it was there.
bool cut_suffix(std::string& architecture) {
    if (!architecture.ends_with(kPackedSuffix)) return false;
    architecture.resize(architecture.size() - kPackedSuffix.size());
    return true;
}

/// Checks the packed tensors of one file, and restores their types and shapes.
class Reader {
   public:
    Reader(const Mapping& file, Metadata& metadata, std::vector<Tensor>& tensors)
        : file_(file), metadata_(metadata), tensors_(tensors) {
        for (Tensor& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
    }

    void read() {
        auto* architecture = architecture_of();
        const bool named = architecture && cut_suffix(*architecture);
        const Value* layout = find_value(metadata_, kLayoutKey);
        if (!layout && !named) return;
        check_layout(layout);
        if (!named) {
            throw file_.error(std::string("is packed, but key '") + kArchitecture + "' does not end in '" +
                              kPackedSuffix + "'" + kAgain);
        }
        const auto& names = array<Names>(kPackedTensorsKey, "names");
        const auto& types = array<Numbers>(kPackedTypesKey, "integers");
        const auto& shapes = array<Numbers>(kPackedShapesKey, "integers");
        if (types.size() != names.size() || shapes.size() != 3 * names.size()) {
            throw file_.error("names " + std::to_string(names.size()) + " packed tensors, but has " +
                              std::to_string(types.size()) + " types and " + std::to_string(shapes.size()) +
                              " sizes of them, wanted one and three for each" + kAgain);
        }
        for (size_t i = 0; i < names.size(); ++i) unwrap(names[i], types[i], &shapes[3 * i]);
    }

   private:
    std::string* architecture_of() {
        const auto found = std::ranges::find(metadata_, kArchitecture, &Metadata::value_type::first);
        return found == metadata_.end() ? nullptr : std::get_if<std::string>(&found->second);
    }

    void check_layout(const Value* layout) const {
        if (layout == nullptr) {
            throw file_.error(std::string("key '") + kArchitecture + "' ends in '" + kPackedSuffix + "', but key '" +
                              kLayoutKey + "' is missing" + kAgain);
        }
        const auto* version = std::get_if<int64_t>(layout);
        if (version && *version == kernels::kLayoutVersion) return;
        throw file_.error("key '" + kLayoutKey + "' is " + (version ? std::to_string(*version) : describe(*layout)) +
                          ", and this version reads layout " + std::to_string(kernels::kLayoutVersion) + kAgain);
    }

    template <typename T>
    const T& array(const std::string& key, const std::string& element) const {
        const Value* value = find_value(metadata_, key);
        const auto* found = value ? std::get_if<Array>(value) : nullptr;
        if (found && std::holds_alternative<T>(*found)) return std::get<T>(*found);
        throw file_.error("key '" + key + "' is " + (value ? describe(*value) : "missing") + ", wanted an array of " +
                          element + kAgain);
    }

    /// Checks one packed tensor, and gives it the type and shape that it had before packing.
    void unwrap(const std::string& name, int64_t type, const int64_t* shape) {
        const auto found = by_name_.find(name);
        if (found == by_name_.end())
            throw file_.error("key '" + kPackedTensorsKey + "' names " + quote(name) + ", which is not in the file");
        Tensor& tensor = *found->second;
        if (tensor.packed) fail(tensor, "stands twice in key '" + kPackedTensorsKey + "'");
        if (tensor.type != GGML_TYPE_I8 || tensor.n_dims > 2) {
            fail(tensor, "is of type " + type_name(tensor.type) + " and shape " + show_shape(tensor) +
                             ", wanted I8 and the bytes and number of its matrices");
        }
        if (reinterpret_cast<uintptr_t>(tensor.data) % kAlignment)
            fail(tensor, "does not lie at a multiple of " + std::to_string(kAlignment) + " bytes");
        const int64_t matrices = tensor.ne[1];
        check_size(tensor, type, shape, matrices);
        tensor.type = static_cast<ggml_type>(type);
        tensor.ne = {shape[0], shape[1], shape[2], 1};
        tensor.n_dims = shape[2] > 1 ? 3 : 2;
        tensor.packed = matrices;
    }

    void check_size(const Tensor& tensor, int64_t type, const int64_t* shape, int64_t matrices) const {
        const std::string what = "is packed, and its bytes are not those of its type " + std::to_string(type) +
                                 " and shape (" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ", " +
                                 std::to_string(shape[2]) + ")";
        uint64_t values = 1;
        for (int i = 0; i < 3; ++i) {
            const auto product = checked_mul(values, static_cast<uint64_t>(shape[i]));
            if (shape[i] < 1 || !product || *product / kMaxPerByte > tensor.nbytes) fail(tensor, what);
            values = *product;
        }
        const int64_t rows = shape[1] * shape[2];
        if (type < 0 || type >= GGML_TYPE_COUNT || rows % matrices) fail(tensor, what);
        const auto expected = kernels::packed_shape(static_cast<ggml_type>(type), shape[0], rows / matrices, matrices);
        if (!expected || expected->bytes != static_cast<uint64_t>(tensor.ne[0])) fail(tensor, what);
    }

    [[noreturn]] void fail(const Tensor& tensor, const std::string& what) const {
        throw file_.error("tensor " + quote(tensor.name) + " " + what + kAgain);
    }

    const Mapping& file_;
    Metadata& metadata_;
    std::vector<Tensor>& tensors_;
    std::unordered_map<std::string, Tensor*> by_name_;
};

}  // namespace

void read_packed(const Mapping& file, Metadata& metadata, std::vector<Tensor>& tensors) {
    Reader(file, metadata, tensors).read();
}

}  // namespace ds4::gguf
