#include "gguf/tensors.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "gguf/checked.h"
#include "gguf/text.h"

namespace ds4::gguf {

namespace {

constexpr uint64_t kMaxTensors = 1 << 20;
constexpr uint64_t kSmallestEntry = 8 + 4 + 8 + 4 + 8;  // an empty name, n_dims, one dimension, type, offset

/// Returns whether ggml has a type. The ids of removed types are gaps in its table, with a block size of 0.
bool is_known_type(uint32_t id) {
    return id < GGML_TYPE_COUNT && ggml_blck_size(static_cast<ggml_type>(id)) > 0 &&
           ggml_type_size(static_cast<ggml_type>(id)) > 0;
}

std::string read_name(Cursor& cursor, uint64_t index) {
    const std::string where = "tensor " + std::to_string(index) + ", name";
    const auto name = cursor.string(GGML_MAX_NAME - 1, where);
    if (name.empty() || !is_plain(name)) cursor.fail(where, "the name " + quote(name) + ", wanted printable ASCII");
    return std::string(name);
}

void read_shape(Cursor& cursor, Tensor& tensor, const std::string& where) {
    const auto dims = cursor.read<uint32_t>(where);
    if (dims < 1 || dims > GGML_MAX_DIMS) {
        cursor.fail(where, std::to_string(dims) + " dimensions, wanted 1 to " + std::to_string(GGML_MAX_DIMS));
    }
    tensor.n_dims = static_cast<int>(dims);
    tensor.ne = {1, 1, 1, 1};
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dims; ++i) {
        const auto size = cursor.read<uint64_t>(where);
        const auto product = checked_mul(elements, size);
        if (size == 0) cursor.fail(where, "dimension " + std::to_string(i) + " is 0, wanted at least 1");
        if (!product || *product > static_cast<uint64_t>(INT64_MAX)) {
            cursor.fail(where, "dimension " + std::to_string(i) + " is " + std::to_string(size) +
                                   ", which takes the number of elements beyond 2^63 - 1");
        }
        tensor.ne[i] = static_cast<int64_t>(size);
        elements = *product;
    }
}

void read_type(Cursor& cursor, Tensor& tensor, const std::string& where) {
    const auto id = cursor.read<uint32_t>(where);
    if (!is_known_type(id)) {
        const char* hint = id < GGML_TYPE_COUNT ? "; ggml has removed this type, quantise the model again"
                                                : "; the file was made by a newer ggml or by a fork";
        cursor.fail(where, "type id " + std::to_string(id) + ", which is none of ggml's" + hint);
    }
    tensor.type = static_cast<ggml_type>(id);
}

void compute_size(const Cursor& cursor, Tensor& tensor, const std::string& where) {
    const int64_t block = ggml_blck_size(tensor.type);
    if (tensor.ne[0] % block != 0) {
        cursor.fail(where, "rows of " + std::to_string(tensor.ne[0]) + " elements of type " + type_name(tensor.type) +
                               ", wanted a multiple of its block of " + std::to_string(block));
    }
    const uint64_t elements = static_cast<uint64_t>(tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3]);
    const auto bytes = checked_mul(elements / static_cast<uint64_t>(block), ggml_type_size(tensor.type));
    if (!bytes || *bytes > static_cast<uint64_t>(INT64_MAX)) {
        cursor.fail(where, "shape " + show_shape(tensor) + " of type " + type_name(tensor.type) +
                               " takes more than 2^63 - 1 bytes");
    }
    tensor.nbytes = static_cast<size_t>(*bytes);
}

TensorInfo read_tensor_info(Cursor& cursor, uint64_t index) {
    TensorInfo info{};
    info.tensor.name = read_name(cursor, index);
    const std::string where = "tensor " + quote(info.tensor.name);
    read_shape(cursor, info.tensor, where);
    read_type(cursor, info.tensor, where);
    compute_size(cursor, info.tensor, where);
    info.offset = cursor.read<uint64_t>(where);
    return info;
}

/// Returns the offset of a tensor's data in the file. Throws FormatError when it is not aligned or ends outside the
/// file.
uint64_t data_begin(const Mapping& file, const TensorInfo& info, uint64_t start, uint64_t alignment) {
    const std::string where = "tensor " + quote(info.tensor.name) + ": ";
    if (info.offset % alignment != 0) {
        throw file.error(where + "data at offset " + std::to_string(info.offset) + ", wanted a multiple of " +
                         std::to_string(alignment));
    }
    const auto begin = checked_add(start, info.offset);
    const auto end = begin ? checked_add(*begin, info.tensor.nbytes) : std::nullopt;
    if (!end || *end > file.size()) {
        throw file.error(where + "data of " + std::to_string(info.tensor.nbytes) + " bytes at offset " +
                         std::to_string(info.offset) + " after byte " + std::to_string(start) +
                         ", beyond the end of the file at " + std::to_string(file.size()) +
                         "; the file is cut short (an unfinished download, or one part of several)");
    }
    return *begin;
}

void require_no_overlap(const Mapping& file, const std::vector<TensorInfo>& infos) {
    std::vector<const TensorInfo*> order;
    for (const TensorInfo& info : infos) order.push_back(&info);
    std::ranges::sort(order, {}, [](const TensorInfo* info) { return info->offset; });
    for (size_t i = 1; i < order.size(); ++i) {
        const uint64_t end = order[i - 1]->offset + order[i - 1]->tensor.nbytes;
        if (order[i]->offset < end) {
            throw file.error("tensor " + quote(order[i]->tensor.name) + ": data at offset " +
                             std::to_string(order[i]->offset) + " overlaps tensor " + quote(order[i - 1]->tensor.name) +
                             ", which ends at " + std::to_string(end));
        }
    }
}

}  // namespace

std::vector<TensorInfo> read_tensor_infos(Cursor& cursor, uint64_t count) {
    if (count > kMaxTensors || count > cursor.left() / kSmallestEntry) {
        cursor.fail("header, number of tensors",
                    std::to_string(count) + " tensors, more than " +
                        std::to_string(std::min(kMaxTensors, cursor.left() / kSmallestEntry)) + " cannot be here");
    }
    std::vector<TensorInfo> infos;
    std::unordered_set<std::string> seen;
    for (uint64_t i = 0; i < count; ++i) {
        infos.push_back(read_tensor_info(cursor, i));
        const std::string& name = infos.back().tensor.name;
        if (!seen.insert(name).second) cursor.fail("tensor " + quote(name), "stands twice in the file, wanted once");
    }
    return infos;
}

uint64_t locate_tensors(const Mapping& file, std::vector<TensorInfo>& infos, uint64_t start, uint64_t alignment) {
    uint64_t end = start;
    for (TensorInfo& info : infos) {
        const uint64_t begin = data_begin(file, info, start, alignment);
        info.tensor.data = file.data() + begin;
        end = std::max(end, begin + info.tensor.nbytes);
    }
    require_no_overlap(file, infos);
    return end;
}

std::string show_shape(const Tensor& tensor) {
    std::string out = "(";
    for (int i = 0; i < tensor.n_dims; ++i) {
        if (i > 0) out += ", ";
        out += std::to_string(tensor.ne[static_cast<size_t>(i)]);
    }
    return out + ")";
}

std::string type_name(ggml_type type) {
    std::string name = ggml_type_name(type);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return name;
}

}  // namespace ds4::gguf
