#include <algorithm>
#include <charconv>

#include "gguf/shard.h"

namespace ds4::gguf {

namespace {

constexpr size_t kDigits = 5;
constexpr std::string_view kOf = "-of-", kSuffix = ".gguf";
constexpr size_t kTail = 1 + kDigits + kOf.size() + kDigits + kSuffix.size();

/// The parts of the name `PREFIX-00002-of-00004.gguf`; `number` counts from 1.
struct Name {
    std::string prefix;
    int64_t number, count;
};

std::optional<int64_t> five_digits(std::string_view text) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (text.size() != kDigits || !std::ranges::all_of(text, is_digit)) return std::nullopt;
    int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::optional<Name> parse_name(const std::string& path) {
    if (path.size() < kTail) return std::nullopt;
    const std::string_view tail = std::string_view(path).substr(path.size() - kTail);
    const auto number = five_digits(tail.substr(1, kDigits));
    const auto count = five_digits(tail.substr(1 + kDigits + kOf.size(), kDigits));
    const bool fits = tail[0] == '-' && tail.substr(1 + kDigits, kOf.size()) == kOf && tail.ends_with(kSuffix);
    if (!fits || !number || !count) return std::nullopt;
    return Name{path.substr(0, path.size() - kTail), *number, *count};
}

std::string shard_path(const Name& name, int64_t number) {
    const auto digits = [](int64_t value) {
        const std::string text = std::to_string(value);
        return std::string(kDigits - text.size(), '0') + text;
    };
    return name.prefix + "-" + digits(number) + std::string(kOf) + digits(name.count) + std::string(kSuffix);
}

std::optional<int64_t> split_value(const Shard& shard, const std::string& key) {
    const Value* value = find_value(shard.metadata, key);
    if (value == nullptr) return std::nullopt;
    const auto* number = std::get_if<int64_t>(value);
    if (number == nullptr || *number < 0) {
        throw shard.file->error("key '" + key + "' is " + describe(*value) + ", wanted a count");
    }
    return *number;
}

void require_value(const Shard& shard, const std::string& key, int64_t expected, const std::string& why) {
    const auto found = split_value(shard, key);
    if (found == expected) return;
    throw shard.file->error("key '" + key + "' is " + (found ? std::to_string(*found) : "missing") + ", wanted " +
                            std::to_string(expected) + " " + why);
}

/// Returns the parsed name of a shard, after checking it against its keys, or nothing for a file that is not split.
std::optional<Name> name_of(const Shard& shard) {
    const auto name = parse_name(shard.file->path());
    const int64_t count = split_value(shard, "split.count").value_or(0);
    if (count <= 1 && (!name || name->count <= 1)) return std::nullopt;
    if (!name) {
        throw shard.file->error("key 'split.count' is " + std::to_string(count) +
                                ", so this is one shard of a set, but the name does not end in -00001-of-" +
                                "00004.gguf or the like, by which the others are found; give it its name back");
    }
    require_value(shard, "split.count", name->count, "as the file's name says; was the shard renamed?");
    require_value(shard, "split.no", name->number - 1, "as the file's name says; was the shard renamed?");
    return name;
}

Shard read_sibling(const std::string& path, const Name& name) {
    try {
        return read_shard(path);
    } catch (const FormatError& error) {
        throw FormatError(std::string(error.what()) + " (needed as one of the " + std::to_string(name.count) +
                          " shards of the set)");
    }
}

void require_total(const std::vector<Shard>& shards) {
    const auto expected = split_value(shards[0], "split.tensors.count");
    size_t found = 0;
    for (const Shard& shard : shards) found += shard.tensors.size();
    if (!expected || *expected == static_cast<int64_t>(found)) return;
    throw shards[0].file->error("key 'split.tensors.count' is " + std::to_string(*expected) + ", but the " +
                                std::to_string(shards.size()) + " shards hold " + std::to_string(found) + " tensors");
}

}  // namespace

std::vector<Shard> read_shards(const std::string& path) {
    Shard first = read_shard(path);
    const auto name = name_of(first);
    std::vector<Shard> shards;
    if (!name) {
        shards.push_back(std::move(first));
        return shards;
    }
    for (int64_t number = 1; number <= name->count; ++number) {
        shards.push_back(number == name->number ? std::move(first) : read_sibling(shard_path(*name, number), *name));
        name_of(shards.back());
    }
    require_total(shards);
    return shards;
}

}  // namespace ds4::gguf
