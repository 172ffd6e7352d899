#include <pybind11/stl.h>

#include "drafter/hyperparameters.h"
#include "session_arguments.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

DraftBlock draft(Session& s, int32_t anchor, int64_t draft_vocab, Sampler* sampler, Rng* rng, bool read_q) {
    DraftBlock block;
    run([&] { block = s.draft(anchor, {draft_vocab, sampler, rng, read_q}); });
    return block;
}

py::object device_q(Session& s, uint64_t device_draft) {
    std::vector<float> q;
    run([&] { q = s.device_q(device_draft); });
    return table(q, static_cast<size_t>(s.drafter()->hyperparameters().block));
}

/// The rows stay in the session's own memory, which the array keeps alive.
py::array_t<float> verify(const py::object& self, const Tokens& tokens) {
    auto& s = self.cast<Session&>();
    const auto ids = view(tokens);
    std::span<const float> rows;
    run([&] { rows = s.verify(ids); });
    const auto count = static_cast<py::ssize_t>(ids.size()), vocab = static_cast<py::ssize_t>(rows.size()) / count;
    return py::array_t<float>({count, vocab}, rows.data(), self);
}

void verify_on_device(Session& s, const Tokens& tokens) {
    const auto ids = view(tokens);
    run([&] { s.verify_on_device(ids); });
}

std::pair<int32_t, int32_t> accept(Session& s, float temperature, Rng* rng, uint64_t device_draft) {
    AcceptResult result{};
    run([&] { result = s.accept({temperature, rng, device_draft}); });
    return {result.accepted, result.token};
}

}  // namespace

void register_draft_block(py::module_& m) {
    using B = DraftBlock;
    py::class_<B>(m, "DraftBlock", "The proposals of one block; row j is for position 1 + j after the anchor's.")
        .def_property_readonly(
            "tokens", [](const B& b) { return column(b.tokens); }, "Proposals, int32 [block].")
        .def_property_readonly(
            "confidence", [](const B& b) { return column(b.confidence); },
            "P(accepted | those before are), float32 [block]; None without a confidence head.")
        .def_property_readonly(
            "q_probs", [](const B& b) { return table(b.q, b.tokens.size()); },
            "The distribution of the draws, float32 [block, candidates] or [block, vocab]; None for arg max "
            "proposals,\n"
            "and for a q that stays on the device.")
        .def_property_readonly(
            "q_ids", [](const B& b) { return table(b.candidates, b.tokens.size()); },
            "Ids that q is over, int32 [block, candidates]; None for the whole vocabulary.")
        .def_readonly("device_draft", &B::device_draft,
                      "Number of a draft whose q is on the device, until the next draft; 0 where it is not.");
}

void add_speculative_calls(SessionClass& session) {
    session
        .def("draft", &draft, py::arg("anchor"), py::kw_only(), py::arg("draft_vocab") = 0,
             py::arg("sampler") = nullptr, py::arg("rng") = nullptr, py::arg("read_q") = true,
             "Proposes a block after `anchor`. A sampler draws from q, with `rng`; without one the proposals are the\n"
             "arg max. `draft_vocab` is the number of candidates at each position, 0 for the whole vocabulary. A q\n"
             "that the device's own kernels drew from stays there without `read_q`.")
        .def("device_q", &device_q, py::arg("device_draft"),
             "q float32 [block, vocab] of a draft on the device; RequestError after the next draft.")
        .def("verify", &verify, py::arg("tokens"),
             "Logits float32 [rows, vocab] of 1 to 16 rows at the frontier, which stays; a view that is valid until\n"
             "the session's next call.")
        .def("verify_on_device", &verify_on_device, py::arg("tokens"),
             "Verifies as verify() does, but leaves the logits on the device, for accept().")
        .def("accept", &accept, py::kw_only(), py::arg("temperature"), py::arg("rng") = nullptr,
             py::arg("device_draft") = 0,
             "Accepts the verified proposals on the device, one by one: how many are accepted, and the token after\n"
             "them. `device_draft` is the draft they were drawn in; 0: q is 1 at each.")
        .def_property_readonly("accepts_on_device", &Session::accepts_on_device,
                               "Whether the device has kernels that accept proposals.")
        .def_property_readonly("drafts_on_device", &Session::drafts_on_device,
                               "Whether the device's own kernels draw whole vocabularies.")
        .def(
            "commit", [](Session& s, int64_t rows) { run([&] { s.commit(rows); }); }, py::arg("rows"),
            "Puts the first `rows` verified rows into the state.");
}

}  // namespace ds4::bindings
