#pragma once
// Reading of GGUF model files: mapped, validated as a whole before anything is usable, split files as one.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ds4/errors.h"
#include "ggml.h"

namespace ds4::gguf {

/// A metadata array: numbers are widened (integers and bools to int64, floats to double).
using Array = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
/// A metadata value; unsigned 64-bit values above INT64_MAX are a FormatError.
using Value = std::variant<bool, int64_t, double, std::string, Array>;

/// One tensor inside a mapped shard. `data` stays valid as long as the File lives.
struct Tensor {
    std::string name;
    ggml_type type;
    int n_dims;                 // 1..4
    std::array<int64_t, 4> ne;  // ne[0] is the input width (contiguous); missing dims are 1
    size_t nbytes;              // in the file
    int shard;                  // index of the file in `File::paths()`
    const void* data;           // inside the mapping
    int64_t packed = 0;         // matrices that lie packed for the CPU's kernels (packed.h); 0: rows as ggml has them
};

/// A GGUF file, or all shards of a split one. Immutable, safe to share between threads.
class File {
   public:
    /// Maps `path` (any shard of a split set opens the set) and validates it.
    /// Throws FormatError naming file, key or tensor, what was found and what was wanted.
    static std::shared_ptr<const File> open(const std::string& path);

    const std::vector<std::string>& paths() const;  // shard paths in order
    uint32_t version() const;
    uint64_t file_bytes() const;  // total size of all shards

    /// Metadata by key, in file order (shard 0's keys; `split.*` included).
    const std::vector<std::pair<std::string, Value>>& metadata() const;
    const Value* find(const std::string& key) const;
    bool has(const std::string& key) const { return find(key) != nullptr; }

    /// Typed access. `get_*` throws FormatError when the key is missing or of another type; `opt_*` gives nullopt
    /// when it is missing. Integers of any width are accepted for integers; integers too for doubles.
    int64_t get_int(const std::string& key) const;
    double get_double(const std::string& key) const;
    const std::string& get_string(const std::string& key) const;
    std::optional<int64_t> opt_int(const std::string& key) const;
    std::optional<double> opt_double(const std::string& key) const;
    std::optional<bool> opt_bool(const std::string& key) const;
    std::optional<std::string> opt_string(const std::string& key) const;
    /// A numeric array, or a scalar taken as an array of one (the dialects write either).
    std::optional<std::vector<double>> opt_doubles(const std::string& key) const;
    std::optional<std::vector<int64_t>> opt_ints(const std::string& key) const;
    std::optional<std::vector<std::string>> opt_strings(const std::string& key) const;

    const std::vector<Tensor>& tensors() const;
    const Tensor* find_tensor(const std::string& name) const;
    /// Says that a tensor's data will hardly be read again: its pages need not stay in memory.
    void release(const Tensor& tensor) const;
    /// The error every later check of this file should throw: prefixes the path.
    FormatError error(const std::string& what) const;

    ~File();
    File(const File&) = delete;
    File& operator=(const File&) = delete;

   private:
    struct Impl;
    explicit File(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace ds4::gguf
