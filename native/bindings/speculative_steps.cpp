// The steps of a speculative cycle: draft, verify, accept, commit.

#include "drafter/hyperparameters.h"
#include "model/hyperparameters.h"
#include "session_calls.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

DraftBlock draft(Session& s, int32_t anchor, int64_t draft_vocab, Sampler* sampler, Rng* rng, bool read_q) {
    DraftBlock block;
    run([&] { block = s.draft(anchor, {draft_vocab, sampler, rng, read_q}); });
    return block;
}

std::optional<py::array_t<float>> device_q(Session& s, uint64_t draft) {
    std::vector<float> q;
    run([&] { q = s.device_q(draft); });
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

std::pair<int32_t, int32_t> accept_on_device(Session& s, float temperature, Rng* rng, uint64_t device_draft) {
    AcceptResult found{};
    run([&] { found = s.accept({temperature, rng, device_draft}); });
    return {found.accepted, found.token};
}

void commit(Session& s, int64_t rows) {
    run([&] { s.commit(rows); });
}

void register_draft_block(py::module_& m) {
    using D = DraftBlock;
    py::class_<D>(m, "DraftBlock", "The proposals of one draft. Row j is the token j + 1 positions after the anchor.")
        .def_property_readonly(
            "tokens", [](const D& d) { return column(d.tokens).value(); }, "Proposed ids, int32 [block].")
        .def_property_readonly(
            "confidence", [](const D& d) { return column(d.confidence); },
            "P(accepted | those before are), float32 [block]; None without a confidence head.")
        .def_property_readonly(
            "q_probs", [](const D& d) { return table(d.q, d.tokens.size()); },
            "The distributions that the proposals were drawn from, float32 [block, candidates]. None\n"
            "for arg max proposals, and for a q that stayed on the device.")
        .def_property_readonly(
            "q_ids", [](const D& d) { return table(d.ids, d.tokens.size()); },
            "The token of each column of q_probs, int32 [block, candidates]; None where the columns\n"
            "are the whole vocabulary.")
        .def_readonly(
            "device_draft", &D::device_draft,
            "Number of a draft whose q is on the device, for `Session.device_q` and `Session.accept`; 0 where\n"
            "it is not. The next draft ends it.");
}

}  // namespace

void register_speculative_steps(py::module_& m, SessionClass& session) {
    register_draft_block(m);
    session
        .def("draft", &draft, py::arg("anchor"), py::kw_only(), py::arg("draft_vocab") = 0,
             py::arg("sampler") = nullptr, py::arg("rng") = nullptr, py::arg("read_q") = true,
             "Proposes a block after `anchor`, a token that is not in the state. A sampler draws from q, with `rng`;\n"
             "without one the proposals are the arg max. `draft_vocab` limits each position to so many candidates; 0 "
             "is\n"
             "the whole vocabulary. Without `read_q`, a q on the device stays there. Changes nothing that other calls\n"
             "see. Raises RequestError without a drafter and for ids outside the vocabulary, Cancelled, BackendError.")
        .def("device_q", &device_q, py::arg("draft"),
             "Reads q, float32 [block, vocab], of a draft on the device. Raises RequestError after the next draft.")
        .def("verify", &verify, py::arg("tokens"),
             "Returns logits float32 [rows, vocab] of 1 to 16 rows at the frontier, which stays: a view that is valid\n"
             "until the session's next call.")
        .def("verify_on_device", &verify_on_device, py::arg("tokens"),
             "Evaluates rows as `verify` does, and leaves their logits on the device, for `accept`.")
        .def(
            "accept", &accept_on_device, py::kw_only(), py::arg("temperature"), py::arg("rng") = nullptr,
            py::arg("device_draft") = 0,
            "Accepts or rejects the verified proposals on the device, one by one. Returns how many are accepted, and\n"
            "the token after them. `device_draft` is the draft that drew them; 0: q is 1 at each. Raises RequestError\n"
            "where nothing is verified or the draft is another, BackendError for logits that are no numbers.")
        .def_property_readonly("accepts_on_device", &Session::accepts_on_device,
                               "Whether the device has kernels that accept proposals.")
        .def_property_readonly("drafts_on_device", &Session::drafts_on_device,
                               "Whether the device's own kernels draw whole vocabularies.")
        .def("commit", &commit, py::arg("rows"), "Puts the first `rows` verified rows into the state.");
}

}  // namespace ds4::bindings
