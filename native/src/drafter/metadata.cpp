#include "drafter/metadata.h"

#include <string>

#include "model/keys.h"

namespace ds4::drafter {

namespace {

constexpr int64_t kMaxBlock = 16, kMaxTaps = 8, kMaxId = INT32_MAX;

using Spellings = std::vector<std::string>;
using Ids = std::vector<int64_t>;

std::string text(int64_t value) { return std::to_string(value); }

std::string text(const Ids& ids) {
    std::string out;
    for (const int64_t id : ids) out += (out.empty() ? "" : ", ") + std::to_string(id);
    return "[" + out + "]";
}

std::string list(const Spellings& keys) {
    std::string out;
    for (const std::string& key : keys) out += (out.empty() ? "'" : ", '") + key + "'";
    return out;
}

/// Reads the metadata of one file.
class Reader {
   public:
    Reader(const gguf::File& file, const Names& names) : file_(file), keys_(file, ""), names_(names) {}

    Metadata read() const {
        check_stages();
        if (file_.opt_bool("dflash.attention.causal").value_or(false))
            keys_.fail("dflash.attention.causal", "true", "false: a DSpark block sees the whole of itself");
        Metadata out{};
        out.from_anchor = boolean({"dflash.sample_from_anchor", flash("sample_from_anchor")}).value_or(true);
        out.block = block(out.from_anchor);
        out.noise = noise();
        out.taps = taps();
        out.rank = integer(join({flash("dspark.markov_rank")}, dspark("markov_rank")), 0, kMaxId);
        out.experts = integer(join(own("expert_count"), {"deepseek4.dspark.expert_count"}), 1, kMaxId);
        out.confidence_width = integer({flash("dspark.confidence_dim")}, 0, kMaxId);
        out.confidence = boolean({"dflash.has_confidence_head", flash("dspark.confidence.enabled")});
        return out;
    }

   private:
    std::string flash(const std::string& name) const { return names_.architecture + ".dflash." + name; }
    static Spellings dspark(const std::string& name) {
        return {"deepseek4.dspark." + name, "deepseek4.dspark_" + name, "dspark." + name};
    }
    /// Returns the spelling of a key under the drafter's own architecture, or none when the metadata may be the
    /// target's.
    Spellings own(const std::string& name) const {
        const bool apart = names_.contract == Contract::dflash || names_.contract == Contract::lucebox;
        return apart ? Spellings{names_.architecture + "." + name} : Spellings{};
    }
    static Spellings join(Spellings a, const Spellings& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    }

    /// Returns the value that all present keys agree on, or nothing. `read` returns the value of one key. Throws
    /// FormatError when two keys differ.
    template <typename F>
    auto agreed(const Spellings& keys, F read) const -> std::optional<decltype(read(std::string()))> {
        const std::string* first = nullptr;
        std::optional<decltype(read(std::string()))> found;
        for (const std::string& key : keys) {
            if (!file_.has(key)) continue;
            auto value = read(key);
            if (first && value != *found) keys_.fail(key, text(value), text(*found) + ", as key '" + *first + "' says");
            if (!first) first = &key;
            found = std::move(value);
        }
        return found;
    }

    std::optional<int64_t> integer(const Spellings& keys, int64_t low, int64_t high) const {
        return agreed(keys, [&](const std::string& key) { return keys_.integer(key, low, high); });
    }
    std::optional<bool> boolean(const Spellings& keys) const {
        return agreed(keys, [&](const std::string& key) { return keys_.boolean(key); });
    }
    int64_t required(const Spellings& keys, int64_t low, int64_t high, const std::string& what) const {
        const auto found = integer(keys, low, high);
        if (!found) throw file_.error("says nowhere " + what + ", wanted one of the keys " + list(keys));
        return *found;
    }

    void check_stages() const {
        Spellings keys = own("block_count");
        for (const char* name : {"stage_count", "n_layers", "n_mtp_layers", "layer_count"})
            keys = join(keys, dspark(name));
        const auto found = integer(keys, 1, kMaxId);
        if (!found || *found == names_.stages) return;
        throw file_.error("has " + text(names_.stages) + " draft stages, but its metadata says " + text(*found) +
                          " (one of the keys " + list(keys) + ")");
    }

    /// Returns the number of proposals. The key has the number of rows, which is one more when the anchor's row does
    /// not predict.
    int64_t block(bool from_anchor) const {
        const Spellings keys = join({"dflash.block_size", flash("block_size")}, dspark("block_size"));
        const int64_t unused = from_anchor ? 0 : 1;
        return required(keys, 1 + unused, kMaxBlock + unused, "how long a block it drafts") - unused;
    }

    int64_t noise() const {
        Spellings keys = join({flash("mask_token_id")}, dspark("noise_token_id"));
        // In the other contracts the tokenizer's metadata are the target's.
        if (names_.contract == Contract::dflash) keys.emplace_back("tokenizer.ggml.mask_token_id");
        return required(keys, 0, kMaxId, "which token fills the block");
    }

    Ids taps() const {
        const Spellings arrays = join({"dflash.target_layers", flash("capture_layer_ids"), flash("target_layer_ids")},
                                      join(dspark("target_layer_ids"), {"deepseek4.dspark.target_layers"}));
        Spellings keys;
        for (const std::string& key : arrays) keys = join(keys, {key, key + ".0"});
        const auto found = agreed(keys, [&](const std::string& key) { return ids(key); });
        if (!found)
            throw file_.error("says nowhere which target layers it reads, wanted one of the keys " + list(arrays));
        return *found;
    }

    /// Returns the layer indices in an array, or in the scalars "key.0", "key.1" and so on.
    Ids ids(const std::string& key) const {
        Ids out = key.ends_with(".0") ? scalars(key.substr(0, key.size() - 1)) : *file_.opt_ints(key);
        if (out.empty() || out.size() > kMaxTaps)
            keys_.fail(key, text(static_cast<int64_t>(out.size())) + " layers", "1 to " + text(kMaxTaps));
        // llama.cpp's key has the index of the layer whose input is the tapped output, one more than the tapped
        // layer's.
        const int64_t shift = key == "dflash.target_layers" ? 1 : 0;
        int64_t last = shift - 1;
        for (int64_t& id : out) {
            if (id <= last || id > kMaxId) keys_.fail(key, text(out), "increasing layers from " + text(shift));
            last = id;
            id -= shift;
        }
        return out;
    }

    Ids scalars(const std::string& prefix) const {
        Ids out;
        for (int64_t i = 0; file_.has(prefix + text(i)); ++i) out.push_back(file_.get_int(prefix + text(i)));
        return out;
    }

    const gguf::File& file_;
    model::Keys keys_;
    const Names& names_;
};

}  // namespace

Metadata read_metadata(const gguf::File& file, const Names& names) { return Reader(file, names).read(); }

}  // namespace ds4::drafter
