#include "gguf/metadata.h"

#include <algorithm>
#include <type_traits>
#include <unordered_set>

#include "gguf/text.h"

namespace ds4::gguf {

namespace {

// Limits far above what models need. They bound the memory that a damaged file can ask for.
constexpr uint64_t kMaxKeys = 1 << 16;
constexpr uint64_t kMaxKeyLength = (1 << 16) - 1;
constexpr uint64_t kMaxString = 1 << 26;
constexpr uint64_t kMaxElements = 1 << 22;
constexpr uint64_t kSmallestEntry = 8 + 4 + 1;  // an empty key, a type, one byte

enum class Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// Calls visit(T{}) with the C++ type of a numeric type. Returns false for the other types.
template <typename Visit>
bool visit_number(Type type, Visit&& visit) {
    switch (type) {
        case Type::u8:
            visit(uint8_t{});
            return true;
        case Type::i8:
            visit(int8_t{});
            return true;
        case Type::u16:
            visit(uint16_t{});
            return true;
        case Type::i16:
            visit(int16_t{});
            return true;
        case Type::u32:
            visit(uint32_t{});
            return true;
        case Type::i32:
            visit(int32_t{});
            return true;
        case Type::f32:
            visit(float{});
            return true;
        case Type::u64:
            visit(uint64_t{});
            return true;
        case Type::i64:
            visit(int64_t{});
            return true;
        case Type::f64:
            visit(double{});
            return true;
        case Type::boolean:
            visit(bool{});
            return true;
        default:
            return false;
    }
}

template <typename T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

/// Reads and widens the number at `raw`. Throws FormatError for booleans other than 0 and 1, and for integers above
/// 2^63 - 1.
template <typename T>
Wide<T> widen(const Cursor& cursor, const std::byte* raw, const std::string& where) {
    std::conditional_t<std::is_same_v<T, bool>, uint8_t, T> value;
    std::memcpy(&value, raw, sizeof(value));
    if constexpr (std::is_same_v<T, bool>) {
        if (value > 1) cursor.fail(where, "a boolean of " + std::to_string(value) + ", wanted 0 or 1");
    }
    if constexpr (std::is_same_v<T, uint64_t>) {
        if (value > static_cast<uint64_t>(INT64_MAX)) {
            cursor.fail(where, "the integer " + std::to_string(value) + ", wanted at most 2^63 - 1");
        }
    }
    return static_cast<Wide<T>>(value);
}

template <typename T>
std::vector<Wide<T>> read_numbers(Cursor& cursor, uint64_t count, const std::string& where) {
    const auto raw = cursor.bytes(count, sizeof(T), where);
    std::vector<Wide<T>> out(static_cast<size_t>(count));
    for (size_t i = 0; i < out.size(); ++i) out[i] = widen<T>(cursor, raw.data() + i * sizeof(T), where);
    return out;
}

std::vector<std::string> read_strings(Cursor& cursor, uint64_t count, const std::string& where) {
    if (count > cursor.left() / sizeof(uint64_t)) {
        cursor.fail(where, std::to_string(count) + " strings, more than the " + std::to_string(cursor.left()) +
                               " bytes left can hold; the file is cut short or damaged");
    }
    std::vector<std::string> out(static_cast<size_t>(count));
    for (std::string& text : out) text = cursor.string(kMaxString, where);
    return out;
}

[[noreturn]] void fail_type(const Cursor& cursor, Type type, const std::string& where) {
    cursor.fail(where, "value type " + std::to_string(static_cast<uint32_t>(type)) + ", wanted 0 to 12");
}

Array read_array(Cursor& cursor, const std::string& where) {
    const auto type = static_cast<Type>(cursor.read<uint32_t>(where));
    const auto count = cursor.read<uint64_t>(where);
    if (type == Type::array) cursor.fail(where, "an array of arrays, wanted numbers or strings");
    if (count > kMaxElements) {
        cursor.fail(where, "an array of " + std::to_string(count) + " elements, wanted at most " +
                               std::to_string(kMaxElements));
    }
    if (type == Type::string) return read_strings(cursor, count, where);
    Array out;
    const bool numeric = visit_number(type, [&](auto kind) {  //
        out = read_numbers<decltype(kind)>(cursor, count, where);
    });
    if (!numeric) fail_type(cursor, type, where);
    return out;
}

Value read_value(Cursor& cursor, const std::string& where) {
    const auto type = static_cast<Type>(cursor.read<uint32_t>(where));
    if (type == Type::array) return read_array(cursor, where);
    if (type == Type::string) return std::string(cursor.string(kMaxString, where));
    Value out;
    const bool numeric = visit_number(type, [&](auto kind) {
        using T = decltype(kind);
        const auto number = read_numbers<T>(cursor, 1, where)[0];
        if constexpr (std::is_same_v<T, bool>) {
            out = number != 0;
        } else {
            out = number;
        }
    });
    if (!numeric) fail_type(cursor, type, where);
    return out;
}

std::string read_key(Cursor& cursor, uint64_t index) {
    const std::string where = "metadata key " + std::to_string(index);
    const auto key = cursor.string(kMaxKeyLength, where);
    if (key.empty() || !is_plain(key)) cursor.fail(where, "the key " + quote(key) + ", wanted printable ASCII");
    return std::string(key);
}

}  // namespace

Metadata read_metadata(Cursor& cursor, uint64_t count) {
    if (count > kMaxKeys || count > cursor.left() / kSmallestEntry) {
        cursor.fail("header, number of metadata keys",
                    std::to_string(count) + " keys, more than " +
                        std::to_string(std::min(kMaxKeys, cursor.left() / kSmallestEntry)) + " cannot be here");
    }
    Metadata metadata;
    std::unordered_set<std::string> seen;
    for (uint64_t i = 0; i < count; ++i) {
        std::string key = read_key(cursor, i);
        const std::string where = "key " + quote(key);
        if (!seen.insert(key).second) cursor.fail(where, "stands twice in the metadata, wanted once");
        metadata.emplace_back(std::move(key), read_value(cursor, where));
    }
    return metadata;
}

const Value* find_value(const Metadata& metadata, std::string_view key) {
    const auto found =
        std::ranges::find(metadata, key, [](const auto& entry) -> std::string_view { return entry.first; });
    return found == metadata.end() ? nullptr : &found->second;
}

std::string describe(const Value& value) {
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "the boolean true" : "the boolean false";
    if (const auto* number = std::get_if<int64_t>(&value)) return "the integer " + std::to_string(*number);
    if (const auto* number = std::get_if<double>(&value)) return "the float " + std::to_string(*number);
    if (const auto* text = std::get_if<std::string>(&value)) return "the string " + quote(*text);
    constexpr const char* kinds[] = {" integers", " floats", " strings"};
    const auto& array = std::get<Array>(value);
    const size_t size = std::visit([](const auto& items) { return items.size(); }, array);
    return "an array of " + std::to_string(size) + kinds[array.index()];
}

}  // namespace ds4::gguf
