#pragma once
// Range-checked access to the metadata keys of one architecture. Each error (FormatError) names the key, what was found
// and what was wanted.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf.h"

namespace ds4::model {

/// The keys of `file` that begin with a prefix. The getters throw FormatError for a value of another type or out of
/// range, and for a missing key unless they have a `fallback`.
class Keys {
   public:
    /// `prefix` is put before every key: "deepseek4.", for example.
    Keys(const gguf::File& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

    std::string full(const std::string& key) const { return prefix_ + key; }
    bool has(const std::string& key) const { return file_.has(full(key)); }

    /// Returns an integer from `low` to `high`.
    int64_t integer(const std::string& key, int64_t low, int64_t high) const;
    int64_t integer(const std::string& key, int64_t low, int64_t high, int64_t fallback) const;
    /// Returns a finite number from `low` to `high`.
    float number(const std::string& key, double low, double high) const;
    float number(const std::string& key, double low, double high, double fallback) const;
    bool boolean(const std::string& key) const;
    /// Return one entry per layer, each from `low` to `high`. The key has an array of at least `layers` entries, of
    /// which those for MTP blocks at the end are dropped, or one number for all layers.
    std::vector<int64_t> integers(const std::string& key, int64_t layers, int64_t low, int64_t high) const;
    std::vector<float> numbers(const std::string& key, int64_t layers, double low, double high) const;

    /// Throws the error of a key.
    [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const;

   private:
    template <typename T, typename Bound>
    std::vector<T> per_layer(const std::string& key, std::vector<Bound> found, int64_t layers, Bound low,
                             Bound high) const;

    const gguf::File& file_;
    std::string prefix_;
};

}  // namespace ds4::model
