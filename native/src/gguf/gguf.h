#pragma once
// Reads GGUF model files. A file is mapped and validated as a whole before anything of it can be used; the shards of a
// split model are one File.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ds4/errors.h"
#include "ggml.h"

namespace ds4::gguf {

/// A metadata array. Integers and booleans are widened to int64, floats to double.
using Array = std::variant<std::vector<int64_t>, std::vector<double>, std::vector<std::string>>;
/// A metadata value. An unsigned 64-bit value above INT64_MAX is a FormatError.
using Value = std::variant<bool, int64_t, double, std::string, Array>;

/// A tensor in a mapped shard. `data` is valid as long as the File lives.
struct Tensor {
    std::string name;
    ggml_type type;
    int n_dims;                 // 1..4
    std::array<int64_t, 4> ne;  // the shape in ggml's order: ne[0] is contiguous; missing dims are 1
    size_t nbytes;              // bytes in the file
    int shard;                  // index of the file in `File::paths()`
    const void* data;           // inside the mapping
    int64_t packed = 0;         // the number of matrices packed for the CPU's kernels (packed.h); 0: rows as in ggml
};

/// A GGUF file, or all shards of a split model. It is immutable and safe to share between threads.
class File {
   public:
    /// Maps and validates `path`; any shard of a split model opens all of them. Throws FormatError naming the file and
    /// the key or tensor, what was found and what was wanted.
    static std::shared_ptr<const File> open(const std::string& path);

    const std::vector<std::string>& paths() const;  // shard paths in order
    uint32_t version() const;
    uint64_t file_bytes() const;  // total size of all shards

    /// Returns the metadata of shard 0 in file order, `split.*` included.
    const std::vector<std::pair<std::string, Value>>& metadata() const;
    /// Returns the value of a key, or null.
    const Value* find(const std::string& key) const;
    bool has(const std::string& key) const { return find(key) != nullptr; }

    /// Return the value of a key by type. `get_*` throws FormatError when the key is missing, `opt_*` returns nullopt
    /// then; both throw it for a value of another type. Integers have any width, and are accepted for doubles.
    int64_t get_int(const std::string& key) const;
    double get_double(const std::string& key) const;
    const std::string& get_string(const std::string& key) const;
    std::optional<int64_t> opt_int(const std::string& key) const;
    std::optional<double> opt_double(const std::string& key) const;
    std::optional<bool> opt_bool(const std::string& key) const;
    std::optional<std::string> opt_string(const std::string& key) const;
    /// Return an array. A single number counts as an array of one, because dialects write either.
    std::optional<std::vector<double>> opt_doubles(const std::string& key) const;
    std::optional<std::vector<int64_t>> opt_ints(const std::string& key) const;
    std::optional<std::vector<std::string>> opt_strings(const std::string& key) const;

    const std::vector<Tensor>& tensors() const;
    /// Returns a tensor by name, or null.
    const Tensor* find_tensor(const std::string& name) const;
    /// Tells the system that a tensor's data will hardly be read again, so that it may drop the pages from memory.
    void release(const Tensor& tensor) const;
    /// Returns a FormatError about this file: the path, then `what`. Later checks of the contents throw it.
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
