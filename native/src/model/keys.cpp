#include "model/keys.h"

#include <locale>
#include <sstream>

namespace ds4::model {

namespace {

template <typename T>
std::string show(T value) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out.precision(9);
    out << value;
    return out.str();
}

template <typename T>
std::string range(T low, T high) {
    return low == high ? show(low) : show(low) + " to " + show(high);
}

/// Returns whether low <= value <= high; false for NaN.
template <typename T>
bool inside(T value, T low, T high) {
    return value >= low && value <= high;
}

}  // namespace

void Keys::fail(const std::string& key, const std::string& found, const std::string& expected) const {
    throw file_.error("key '" + full(key) + "' is " + found + ", wanted " + expected);
}

int64_t Keys::integer(const std::string& key, int64_t low, int64_t high) const {
    const int64_t value = file_.get_int(full(key));
    if (!inside(value, low, high)) fail(key, show(value), range(low, high));
    return value;
}

int64_t Keys::integer(const std::string& key, int64_t low, int64_t high, int64_t fallback) const {
    return has(key) ? integer(key, low, high) : fallback;
}

float Keys::number(const std::string& key, double low, double high) const {
    const double value = file_.get_double(full(key));
    if (!inside(value, low, high)) fail(key, show(value), range(low, high));
    return static_cast<float>(value);
}

float Keys::number(const std::string& key, double low, double high, double fallback) const {
    return has(key) ? number(key, low, high) : static_cast<float>(fallback);
}

bool Keys::boolean(const std::string& key) const {
    const auto value = file_.opt_bool(full(key));
    if (!value) fail(key, "missing", "a boolean");
    return *value;
}

template <typename T, typename Bound>
std::vector<T> Keys::per_layer(const std::string& key, std::vector<Bound> found, int64_t layers, Bound low,
                               Bound high) const {
    const auto count = static_cast<size_t>(layers);
    if (found.size() == 1) found.assign(count, found[0]);
    if (found.size() < count) {
        fail(key, "an array of " + show(found.size()), show(layers) + " entries or more, one per layer");
    }
    found.resize(count);
    for (size_t i = 0; i < count; ++i) {
        if (!inside(found[i], low, high)) fail(key, show(found[i]) + " in layer " + show(i), range(low, high));
    }
    return {found.begin(), found.end()};
}

std::vector<int64_t> Keys::integers(const std::string& key, int64_t layers, int64_t low, int64_t high) const {
    auto found = file_.opt_ints(full(key));
    if (!found) fail(key, "missing", "an integer per layer");
    return per_layer<int64_t>(key, *std::move(found), layers, low, high);
}

std::vector<float> Keys::numbers(const std::string& key, int64_t layers, double low, double high) const {
    auto found = file_.opt_doubles(full(key));
    if (!found) fail(key, "missing", "a number per layer");
    return per_layer<float>(key, *std::move(found), layers, low, high);
}

}  // namespace ds4::model
