// Access to the metadata by type.

#include <cmath>

#include "gguf/gguf.h"
#include "gguf/metadata.h"
#include "gguf/text.h"

namespace ds4::gguf {

namespace {

FormatError mismatch(const File& file, const std::string& key, const Value& found, const char* expected) {
    return file.error("key " + quote(key) + " is " + describe(found) + ", wanted " + expected);
}

template <typename T>
std::optional<T> get(const File& file, const std::string& key, const char* expected) {
    const Value* value = file.find(key);
    if (value == nullptr) return std::nullopt;
    const T* found = std::get_if<T>(value);
    if (found == nullptr) throw mismatch(file, key, *value, expected);
    return *found;
}

template <typename T>
T require(const File& file, const std::string& key, const char* expected, std::optional<T> found) {
    if (!found) throw file.error("key " + quote(key) + " is missing, wanted " + expected);
    return *std::move(found);
}

/// Returns the integer that a float stands for, or nothing. Some dialects write integers as floats in arrays.
std::optional<int64_t> as_integer(double value) {
    const bool whole = std::trunc(value) == value && std::abs(value) < 9007199254740992.0;
    return whole ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

}  // namespace

std::optional<int64_t> File::opt_int(const std::string& key) const { return get<int64_t>(*this, key, "an integer"); }
std::optional<bool> File::opt_bool(const std::string& key) const { return get<bool>(*this, key, "a boolean"); }
std::optional<std::string> File::opt_string(const std::string& key) const {
    return get<std::string>(*this, key, "a string");
}

std::optional<double> File::opt_double(const std::string& key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<int64_t>(value)) return static_cast<double>(*number);
    return get<double>(*this, key, "a number");
}

int64_t File::get_int(const std::string& key) const { return require(*this, key, "an integer", opt_int(key)); }
double File::get_double(const std::string& key) const { return require(*this, key, "a number", opt_double(key)); }

const std::string& File::get_string(const std::string& key) const {
    require(*this, key, "a string", opt_string(key));
    return std::get<std::string>(*find(key));
}

std::optional<std::vector<double>> File::opt_doubles(const std::string& key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* number = std::get_if<double>(value)) return std::vector{*number};
    if (const auto* number = std::get_if<int64_t>(value)) return std::vector{static_cast<double>(*number)};
    const auto* array = std::get_if<Array>(value);
    if (array == nullptr || array->index() == 2) throw mismatch(*this, key, *value, "numbers");
    if (const auto* doubles = std::get_if<std::vector<double>>(array)) return *doubles;
    const auto& integers = std::get<std::vector<int64_t>>(*array);
    return std::vector<double>(integers.begin(), integers.end());
}

std::optional<std::vector<int64_t>> File::opt_ints(const std::string& key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* array = std::get_if<Array>(value);
    if (array != nullptr && array->index() == 0) return std::get<std::vector<int64_t>>(*array);
    if (const auto* number = std::get_if<int64_t>(value)) return std::vector{*number};
    const auto numbers = opt_doubles(key);
    std::vector<int64_t> out;
    for (const double number : *numbers) {
        const auto whole = as_integer(number);
        if (!whole) throw mismatch(*this, key, *value, "whole numbers");
        out.push_back(*whole);
    }
    return out;
}

std::optional<std::vector<std::string>> File::opt_strings(const std::string& key) const {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto* array = std::get_if<Array>(value);
    const auto* strings = array == nullptr ? nullptr : std::get_if<std::vector<std::string>>(array);
    const bool empty = array != nullptr && std::visit([](const auto& items) { return items.empty(); }, *array);
    if (strings == nullptr && !empty) throw mismatch(*this, key, *value, "an array of strings");
    return strings == nullptr ? std::vector<std::string>{} : *strings;
}

}  // namespace ds4::gguf
