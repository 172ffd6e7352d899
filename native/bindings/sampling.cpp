#include "ds4/sampling.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>

#include "arrays.h"
#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

using Bias = std::map<int32_t, float>;

py::array_t<float> distribution(Sampler& sampler, const py::array& logits, const py::array& history,
                                const py::array& ids) {
    const auto row = view_of<float>(logits, 1, "sampler: logits");
    const auto tokens = view_of<int32_t>(history, 1, "sampler: history");
    const auto listed = view_of<int32_t>(ids, 1, "sampler: ids");
    py::array_t<float> result(static_cast<py::ssize_t>(row.size()));
    float* out = result.mutable_data();
    {
        py::gil_scoped_release release;
        std::ranges::copy(sampler.distribution(row, tokens, listed), out);
    }
    return result;
}

int32_t sample(Sampler& sampler, const py::array& logits, const py::array& history, Rng& rng, const py::array& ids) {
    const auto row = view_of<float>(logits, 1, "sampler: logits");
    const auto tokens = view_of<int32_t>(history, 1, "sampler: history");
    const auto listed = view_of<int32_t>(ids, 1, "sampler: ids");
    py::gil_scoped_release release;
    return sampler.sample(row, tokens, rng, listed);
}

int32_t draw_weights(const py::array& weights, double u) {
    const auto row = view_of<float>(weights, 1, "draw: weights");
    py::gil_scoped_release release;
    return draw(row, u);
}

/// Plain tuples (token, logprob, ((token, logprob), ...)).
py::list logprob_rows(const py::array& logits, const py::array& tokens, int64_t top) {
    const auto rows = view_of<float>(logits, 2, "logprobs: logits");
    const auto ids = view_of<int32_t>(tokens, 1, "logprobs: tokens");
    std::vector<TokenLogprobs> found;
    {
        py::gil_scoped_release release;
        found = logprobs(rows, static_cast<size_t>(logits.shape(1)), ids, top);
    }
    py::list out;
    for (const TokenLogprobs& each : found)
        out.append(py::make_tuple(each.token, each.logprob, py::tuple(py::cast(each.top))));
    return out;
}

SamplingPolicy make_policy(float temperature, int32_t top_k, float top_p, float min_p, float repetition_penalty,
                           float presence_penalty, float frequency_penalty, int32_t penalty_last_n,
                           const Bias& logit_bias) {
    SamplingPolicy policy{.temperature = temperature,
                          .top_k = top_k,
                          .top_p = top_p,
                          .min_p = min_p,
                          .repetition_penalty = repetition_penalty,
                          .presence_penalty = presence_penalty,
                          .frequency_penalty = frequency_penalty,
                          .penalty_last_n = penalty_last_n,
                          .logit_bias = {logit_bias.begin(), logit_bias.end()}};
    policy.validate();
    return policy;
}

void register_policy(py::module_& m) {
    const SamplingPolicy defaults;
    py::class_<SamplingPolicy>(m, "SamplingPolicy", "What a request asks of the sampler; immutable.")
        .def(py::init(&make_policy), py::kw_only(), py::arg("temperature") = defaults.temperature,
             py::arg("top_k") = defaults.top_k, py::arg("top_p") = defaults.top_p, py::arg("min_p") = defaults.min_p,
             py::arg("repetition_penalty") = defaults.repetition_penalty,
             py::arg("presence_penalty") = defaults.presence_penalty,
             py::arg("frequency_penalty") = defaults.frequency_penalty,
             py::arg("penalty_last_n") = defaults.penalty_last_n, py::arg("logit_bias") = Bias{},
             "Raises RequestError naming the field that is out of range.")
        .def_readonly("temperature", &SamplingPolicy::temperature)
        .def_readonly("top_k", &SamplingPolicy::top_k)
        .def_readonly("top_p", &SamplingPolicy::top_p)
        .def_readonly("min_p", &SamplingPolicy::min_p)
        .def_readonly("repetition_penalty", &SamplingPolicy::repetition_penalty)
        .def_readonly("presence_penalty", &SamplingPolicy::presence_penalty)
        .def_readonly("frequency_penalty", &SamplingPolicy::frequency_penalty)
        .def_readonly("penalty_last_n", &SamplingPolicy::penalty_last_n)
        .def_property_readonly(
            "logit_bias",
            [](const SamplingPolicy& self) { return Bias(self.logit_bias.begin(), self.logit_bias.end()); })
        .def_property_readonly("greedy", &SamplingPolicy::greedy)
        .def_property_readonly("temperature_only", &SamplingPolicy::temperature_only,
                               "Whether a temperature is all there is to it, or nothing but the arg max.")
        .def_property_readonly("penalises", &SamplingPolicy::penalises,
                               "Whether the tokens before a row change its distribution.");
}

void register_rng(py::module_& m) {
    py::class_<Rng>(m, "Rng", "Philox 4x32-10: the stream depends on (seed, draw number) only.")
        .def(py::init<uint64_t, uint64_t>(), py::arg("seed"), py::arg("counter") = 0)
        .def("uniform", &Rng::uniform, "Uniform in [0, 1) with 53 bits.")
        .def_property_readonly("seed", &Rng::seed)
        .def_property_readonly("counter", &Rng::counter, "Draws made so far; Rng(seed, counter) continues from there.");
    m.def("philox4x32", &philox4x32, py::arg("counter"), py::arg("key"),
          "The block function under Rng: four words of counter and two of key to four random words.");
}

void register_sampler(py::module_& m) {
    const py::array none = py::array_t<int32_t>(0);
    py::class_<Sampler>(m, "Sampler", "Logits to distribution to token by one policy; one thread at a time.")
        .def(py::init<SamplingPolicy>(), py::arg("policy"))
        .def_property_readonly("policy", &Sampler::policy)
        .def(
            "distribution", &distribution, py::arg("logits"), py::arg("history") = none, py::arg("ids") = none,
            "Probabilities [vocab] of float32 logits [vocab] after the whole policy; zero for removed tokens. The\n"
            "int32 history, oldest first, is what the penalties look at. With int32 ids [width], distinct, the logits\n"
            "are those of the listed tokens only. Raises RequestError when every token is removed, an id is outside\n"
            "the vocabulary or the ids do not fit the logits, BackendError when a logit is NaN or +inf.")
        .def("sample", &sample, py::arg("logits"), py::arg("history"), py::arg("rng"), py::arg("ids") = none,
             "One token of that distribution; greedy takes nothing from `rng`.");
    m.def(
        "logprobs", &logprob_rows, py::arg("logits"), py::arg("tokens"), py::arg("top"),
        "Natural logarithms of the softmax of float32 logits [at least tokens, vocab], a row for each of int32\n"
        "tokens: (token, logprob, the `top` likeliest as (token, logprob), descending). Raises RequestError for what\n"
        "does not fit, BackendError for NaN and +inf logits.");
    m.def("draw", &draw_weights, py::arg("weights"), py::arg("u"),
          "Index drawn with probability weights[i] / sum(weights) for u in [0, 1); never one of weight zero.");
}

}  // namespace

void register_sampling(py::module_& m) {
    register_policy(m);
    register_rng(m);
    register_sampler(m);
}

}  // namespace ds4::bindings
