#include "machine/text.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace ds4::machine {
namespace {

/// More processors than any machine has: bounds the memory that a damaged list can take.
constexpr int kMostCpus = 1 << 16;

}  // namespace

std::optional<std::string> read_text(const std::filesystem::path& path) {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (file.bad()) return std::nullopt;
    return text;
}

std::optional<int64_t> number(const std::optional<std::string>& text) {
    int64_t value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) {
        return std::nullopt;
    }
    return value;
}

std::optional<int64_t> field(const std::optional<std::string>& text, const std::string& key) {
    std::istringstream lines(text.value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name;
        int64_t value = 0;
        if (words >> name >> value && (name == key || name == key + ":")) return value;
    }
    return std::nullopt;
}

std::vector<int> cpu_list(const std::string& text) {
    std::vector<int> cpus;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        int first = 0, last = 0;
        char dash = 0;
        std::istringstream range(part);
        if (!(range >> first)) return {};
        if (!(range >> dash >> last)) last = first;
        if (first < 0 || last >= kMostCpus) return {};
        for (int cpu = first; cpu <= last; cpu++) cpus.push_back(cpu);
    }
    return cpus;
}

}  // namespace ds4::machine
