#include "drafter/contract.h"

#include <algorithm>

#include "gguf/text.h"
#include "model/target_file.h"

namespace ds4::drafter {

namespace {

constexpr int64_t kMaxStages = 8;
constexpr size_t kMaxArchitecture = 64;
constexpr const char* kWanted = "; wanted a DSpark drafter of DeepSeek-V4";

/// The tensor names of one contract. With `head_in_stage`, the names of the head come after the prefix of the last
/// stage.
struct Layout {
    Contract contract;
    const char *name, *stage;
    bool head_in_stage;
    const char *fusion, *fusion_norm, *output_norm, *hc_head;
    const char *markov_embedding, *markov_output, *confidence, *confidence_bias;
};

constexpr Layout kLayouts[] = {
    {Contract::dflash, "dflash", "blk.", false, "fc.weight", "enc.output_norm.weight", "output_norm.weight",
     "output_hc_", "markov_w1.weight", "markov_w2.weight", "conf_proj.weight", "conf_proj.bias"},
    {Contract::lucebox, "lucebox", "blk.", false, "dflash.fc.weight", "dflash.hidden_norm.weight", "output_norm.weight",
     "output_hc_", "dflash.dspark.markov.w1", "dflash.dspark.markov.w2", "dflash.dspark.confidence.weight",
     "dflash.dspark.confidence.bias"},
    {Contract::support, "ds4", "mtp.", true, "mtp.0.main_proj.weight", "mtp.0.main_norm.weight", "norm.weight",
     "hc_head_", "markov_head.markov_w1.weight", "markov_head.markov_w2.weight", "confidence_head.proj.weight",
     "confidence_head.proj.bias"},
    {Contract::dspark_only, "dspark-only", "mtp.", true, "mtp.0.main_proj.weight", "mtp.0.main_norm.weight",
     "norm.weight", "hc_head_", "markov_head.markov_w1.weight", "markov_head.markov_w2.weight",
     "confidence_head.proj.weight", "confidence_head.proj.bias"},
    {Contract::relayout, "relayout", "dspark.", false, "dspark.main_proj.weight", "dspark.main_norm.weight",
     "dspark.norm.weight", "dspark.hc_head_", "dspark.markov_w1.weight", "dspark.markov_w2.weight",
     "dspark.conf_proj.weight", "dspark.conf_proj.bias"},
};

const Layout& layout(Contract contract) {
    return *std::ranges::find(kLayouts, contract, [](const Layout& each) { return each.contract; });
}

bool has(const gguf::File& file, const std::string& name) { return file.find_tensor(name) != nullptr; }

/// Returns the architecture of a file. Throws FormatError when it is not printable ASCII of a moderate length, because
/// keys begin with it and messages show it.
std::string architecture(const gguf::File& file) {
    const std::string found = file.opt_string("general.architecture").value_or("");
    if (found.size() <= kMaxArchitecture && gguf::is_plain(found)) return found;
    throw file.error("key 'general.architecture' is " + gguf::quote(found) + ", wanted the name of an architecture");
}

bool is_target(const gguf::File& file) {
    return architecture(file) == "deepseek4" && has(file, "token_embd.weight") && has(file, "blk.0.attn_q_a.weight");
}

void refuse_mtp(const gguf::File& file) {
    const std::string marker = model::find_mtp(file);
    if (marker.empty() || is_target(file) || has(file, "mtp.0.main_proj.weight")) return;
    throw file.error("holds a vanilla MTP block (tensor '" + marker + "'), which is not DSpark" + kWanted);
}

void refuse_backbone(const gguf::File& file) {
    if (file.opt_int("dflash.hyper_connection.count").value_or(0) <= 0) {
        throw file.error(
            std::string("holds a DFlash drafter without hyper-connections (key 'dflash.hyper_connection.count'), which "
                        "is for another backbone than DeepSeek-V4's") +
            kWanted);
    }
    if (!has(file, "markov_w1.weight")) {
        throw file.error(
            std::string(
                "holds a DFlash drafter without a Markov head (tensor 'markov_w1.weight'), which is not DSpark") +
            kWanted);
    }
}

[[noreturn]] void refuse_other(const gguf::File& file) {
    if (is_target(file)) {
        throw file.error("holds a DeepSeek-V4 target, wanted a DSpark drafter; pass this file as the model (-m)");
    }
    const std::string found = architecture(file);
    throw file.error("is no DSpark drafter (" +
                     (found.empty() ? "no architecture" : "architecture " + gguf::quote(found)) +
                     "): none of the tensors 'mtp.0.main_proj.weight' (ds4), 'dspark.main_proj.weight' (relayout), "
                     "'dflash.fc.weight' (lucebox) is there, nor 'fc.weight' in a file of architecture 'dflash'");
}

/// Returns the contract of a file, testing in the order of docs/dspark.md section 1.2: a ds4 file may have the metadata
/// of the target that it was made from.
Contract contract_of(const gguf::File& file) {
    refuse_mtp(file);
    if (has(file, "mtp.0.main_proj.weight")) {
        return architecture(file) == "deepseek4-dspark" ? Contract::support : Contract::dspark_only;
    }
    if (has(file, "dspark.main_proj.weight")) return Contract::relayout;
    if (has(file, "dflash.fc.weight")) return Contract::lucebox;
    if (architecture(file) != "dflash" || !has(file, "fc.weight")) refuse_other(file);
    refuse_backbone(file);
    return Contract::dflash;
}

/// Returns the index in a name such as "blk.2.attn_norm.weight", or -1. A number of more than three digits is no stage;
/// the tensor is reported as unknown later.
int64_t stage_index(const std::string& name, const std::string& prefix) {
    if (!name.starts_with(prefix)) return -1;
    const size_t end = name.find_first_not_of("0123456789", prefix.size());
    const size_t digits = end == std::string::npos ? 0 : end - prefix.size();
    if (digits < 1 || digits > 3 || name[end] != '.') return -1;
    return std::stoll(name.substr(prefix.size(), digits));
}

int64_t count_stages(const gguf::File& file, const std::string& prefix) {
    int64_t last = -1;
    for (const gguf::Tensor& tensor : file.tensors()) last = std::max(last, stage_index(tensor.name, prefix));
    if (last >= 0 && last < kMaxStages) return last + 1;
    throw file.error("has " + std::to_string(last + 1) + " draft stages (tensors '" + prefix + "N....'), wanted 1 to " +
                     std::to_string(kMaxStages));
}

void refuse_reduced_vocabulary(const gguf::File& file) {
    if (!has(file, "d2t")) return;
    throw file.error(
        "drafts in a reduced vocabulary (tensor 'd2t'), which is not supported; convert the drafter with the target's "
        "whole vocabulary");
}

}  // namespace

std::string contract_name(Contract contract) { return layout(contract).name; }

std::string Names::stage(int64_t index) const { return layout(contract).stage + std::to_string(index) + "."; }

Names recognise(const gguf::File& file) {
    const Layout& found = layout(contract_of(file));
    refuse_reduced_vocabulary(file);
    const int64_t stages = count_stages(file, found.stage);
    // The ds4 files have the tensors of the head among those of the last stage.
    const std::string at = found.head_in_stage ? found.stage + std::to_string(stages - 1) + "." : "";
    return {found.contract,
            stages,
            architecture(file),
            found.fusion,
            found.fusion_norm,
            at + found.output_norm,
            at + found.hc_head,
            at + found.markov_embedding,
            at + found.markov_output,
            at + found.confidence,
            at + found.confidence_bias};
}

}  // namespace ds4::drafter
