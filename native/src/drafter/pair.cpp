#include <locale>
#include <sstream>

#include "drafter/hyperparameters.h"

namespace ds4::drafter {

namespace {

std::string show(int64_t value) { return std::to_string(value); }
std::string show(bool value) { return value ? "on" : "off"; }

std::string show(float value) {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out.precision(7);
    out << value;
    return out.str();
}

std::string show(const std::vector<float>& stages) {
    std::string out;
    for (const float value : stages) out += (out.empty() ? "[" : ", ") + show(value);
    return out + "]";
}

/// Collects all mismatches, so that one error lists them.
class Mismatches {
   public:
    template <typename T>
    void compare(const std::string& what, const T& found, const T& expected) {
        if (found != expected) add(what + " is " + show(found) + ", the target's " + show(expected));
    }

    void add(const std::string& mismatch) { text_ += (text_.empty() ? "" : "; ") + mismatch; }

    void raise(const gguf::File& file) const {
        if (text_.empty()) return;
        throw PairError(
            file.error("does not fit the target: " + text_ + "; wanted the drafter that was made for this target")
                .what());
    }

   private:
    std::string text_;
};

void compare_shapes(const model::Hyperparameters& s, const model::Hyperparameters& t, Mismatches& out) {
    out.compare("the vocabulary", s.vocab, t.vocab);
    out.compare("the hidden size", s.hidden, t.hidden);
    out.compare("the number of streams", s.streams, t.streams);
    out.compare("the number of heads", s.heads, t.heads);
    out.compare("the head size", s.head_size, t.head_size);
    out.compare("the rope size", s.rope_size, t.rope_size);
    out.compare("the query rank", s.query_rank, t.query_rank);
    out.compare("the number of output groups", s.output_groups, t.output_groups);
    out.compare("the output rank", s.output_rank, t.output_rank);
    out.compare("the window", s.window, t.window);
}

void compare_numbers(const model::Hyperparameters& s, const model::Hyperparameters& t, Mismatches& out) {
    out.compare("the number of experts used", s.experts_used, t.experts_used);
    out.compare("normalising of expert weights", s.normalise_weights, t.normalise_weights);
    out.compare("the scale of routed experts", s.routed_scale, t.routed_scale);
    out.compare("the clamp of routed experts", s.clamp_routed, values_of_last_layers(t.clamp_routed, s.layers));
    out.compare("the clamp of the shared expert", s.clamp_shared, values_of_last_layers(t.clamp_shared, s.layers));
    out.compare("the rope base", s.rope_base, t.rope_base);
    out.compare<int64_t>("the number of Sinkhorn iterations", s.sinkhorn_iterations, t.sinkhorn_iterations);
    out.compare("the hyper-connection epsilon", s.hc_epsilon, t.hc_epsilon);
    out.compare("the norm epsilon", s.norm_epsilon, t.norm_epsilon);
    if (s.experts_used > s.experts)
        out.add("of its " + show(s.experts) + " experts " + show(s.experts_used) + " are used at once in the target");
}

void compare_ids(const Hyperparameters& hp, const model::Hyperparameters& t, Mismatches& out) {
    for (const int64_t tap : hp.taps)
        if (tap >= t.layers) out.add("it taps layer " + show(tap) + ", the target's are 0 to " + show(t.layers - 1));
    if (hp.noise >= t.vocab)
        out.add("its noise token is " + show(hp.noise) + ", the target's ids are 0 to " + show(t.vocab - 1));
}

}  // namespace

void require_pair(const gguf::File& file, const Hyperparameters& hp, const model::Hyperparameters& target) {
    Mismatches found;
    compare_shapes(hp.stages, target, found);
    compare_numbers(hp.stages, target, found);
    compare_ids(hp, target, found);
    found.raise(file);
}

}  // namespace ds4::drafter
