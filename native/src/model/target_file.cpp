#include "model/target_file.h"

#include <algorithm>

#include "gguf/text.h"

namespace ds4::model {

namespace {

constexpr int64_t kMaxLayers = 1024;

constexpr const char* kDrafterArchitectures[] = {"dflash", "deepseek4-dflash-draft", "deepseek_v4_flash_dspark_draft",
                                                 "deepseek4-dspark"};
// Tensors that only drafters have. They decide before the architecture does, because a ds4 support file copies its
// metadata from the target.
constexpr const char* kDrafterTensors[] = {"fc.weight", "dflash.fc.weight", "mtp.0.main_proj.weight",
                                           "dspark.main_proj.weight"};
constexpr const char* kMtpTensors[] = {"mtp.0.e_proj.weight", "mtp.0.h_proj.weight", "mtp.0.enorm.weight"};
constexpr const char* kNextnSuffix = ".nextn.eh_proj.weight";
constexpr const char* kTargetTensor = "blk.0.attn_q_a.weight";

bool is_drafter_architecture(const std::string& architecture) {
    return std::ranges::find(kDrafterArchitectures, architecture) != std::end(kDrafterArchitectures);
}

template <size_t n>
const char* first_present(const gguf::File& file, const char* const (&names)[n]) {
    const auto found = std::ranges::find_if(names, [&](const char* name) { return file.find_tensor(name) != nullptr; });
    return found == std::end(names) ? nullptr : *found;
}

void refuse_drafter(const gguf::File& file, const std::string& architecture) {
    const char* marker = first_present(file, kDrafterTensors);
    const bool named = is_drafter_architecture(architecture);
    if (!named && (marker == nullptr || file.find_tensor(kTargetTensor) != nullptr)) return;
    const std::string found =
        named ? "architecture " + gguf::quote(architecture) : std::string("tensor '") + marker + "'";
    throw file.error("holds a DSpark drafter (" + found +
                     "), wanted a DeepSeek-V4 target; pass this file as the drafter (drafter=, -md) beside a target");
}

void refuse_mtp(const gguf::File& file) {
    if (file.find_tensor(kTargetTensor) != nullptr) return;
    const std::string found = find_mtp(file);
    if (found.empty()) return;
    throw file.error("holds only a vanilla MTP block (tensor '" + found +
                     "'), wanted a DeepSeek-V4 target; MTP blocks are neither targets nor DSpark drafters");
}

}  // namespace

std::string find_mtp(const gguf::File& file) {
    if (const char* marker = first_present(file, kMtpTensors)) return marker;
    const auto found =
        std::ranges::find_if(file.tensors(), [](const gguf::Tensor& t) { return t.name.ends_with(kNextnSuffix); });
    return found == file.tensors().end() ? "" : found->name;
}

void require_target(const gguf::File& file) {
    const auto architecture = file.opt_string("general.architecture");
    refuse_drafter(file, architecture.value_or(""));
    if (!architecture) throw file.error("key 'general.architecture' is missing, wanted 'deepseek4'");
    if (*architecture != "deepseek4") {
        throw file.error("architecture " + gguf::quote(*architecture) +
                         " is not DeepSeek-V4, wanted 'deepseek4'; only DeepSeek-V4 models run here");
    }
    refuse_mtp(file);
}

int64_t count_layers(const gguf::File& file) {
    const int64_t blocks = file.get_int("deepseek4.block_count");
    if (blocks < 1 || blocks > kMaxLayers) {
        throw file.error("key 'deepseek4.block_count' is " + std::to_string(blocks) + ", wanted 1 to " +
                         std::to_string(kMaxLayers));
    }
    const int64_t nextn = file.opt_int("deepseek4.nextn_predict_layers").value_or(0);
    // Some converters write 1 in files without MTP blocks, and do not count it in block_count.
    const bool counted = nextn >= 1 && nextn < blocks &&
                         file.find_tensor("blk." + std::to_string(blocks - nextn) + ".nextn.eh_proj.weight") != nullptr;
    return counted ? blocks - nextn : blocks;
}

}  // namespace ds4::model
