#pragma once
// Checked access to the keys of one architecture. Every error names the key, what was found and wanted.

#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace ds4::model {

class Keys {
   public:
    /// `prefix` is put before every key, "deepseek4." for example.
    Keys(const gguf::File& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

    std::string full(const std::string& key) const { return prefix_ + key; }
    bool has(const std::string& key) const { return file_.has(full(key)); }

    /// An integer from `low` to `high`.
    int64_t integer(const std::string& key, int64_t low, int64_t high) const;
    int64_t integer(const std::string& key, int64_t low, int64_t high, int64_t fallback) const;
    /// A finite number from `low` to `high`.
    float number(const std::string& key, double low, double high) const;
    float number(const std::string& key, double low, double high, double fallback) const;
    bool boolean(const std::string& key) const;
    /// One entry per layer: an array with at least `layers` entries (the rest belongs to MTP blocks and is cut off), or
    /// one number for all. Each from `low` to `high`.
    std::vector<int64_t> integers(const std::string& key, int64_t layers, int64_t low, int64_t high) const;
    std::vector<float> numbers(const std::string& key, int64_t layers, double low, double high) const;

    [[noreturn]] void fail(const std::string& key, const std::string& found, const std::string& expected) const;

   private:
    template <typename T, typename Bound>
    std::vector<T> per_layer(const std::string& key, std::vector<Bound> found, int64_t layers, Bound low,
                             Bound high) const;

    const gguf::File& file_;
    std::string prefix_;
};

}  // namespace ds4::model
