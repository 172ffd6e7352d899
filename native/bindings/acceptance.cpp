#include "ds4/acceptance.h"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "arrays.h"
#include "module.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

Acceptance rule_of(const std::string& name) {
    if (name == "token") return Acceptance::token;
    if (name == "match") return Acceptance::match;
    if (name == "block") return Acceptance::block;
    throw RequestError("accept: the rule is \"" + name + "\", wanted \"token\", \"match\" or \"block\"");
}

/// Throws RequestError for an array of another shape, which flat spans would not show.
void require_shape(const py::array& array, py::ssize_t rows, py::ssize_t columns, const char* what) {
    if (array.shape(0) == rows && array.shape(1) == columns) return;
    throw RequestError("accept: " + std::string(what) + " have the shape [" + std::to_string(array.shape(0)) + ", " +
                       std::to_string(array.shape(1)) + "], wanted [" + std::to_string(rows) + ", " +
                       std::to_string(columns) + "]");
}

std::pair<int32_t, int32_t> accept_proposals(const std::string& rule, Sampler& sampler, const py::array& logits,
                                             const py::array& tokens, const py::array& q,
                                             const std::optional<py::array>& ids, const py::array& history, Rng& rng) {
    const auto rows = view_of<float>(logits, 2, "accept: logits");
    Proposals proposals{.tokens = view_of<int32_t>(tokens, 1, "accept: proposals"),
                        .q = view_of<float>(q, 2, "accept: probabilities of q"),
                        .ids = {}};
    require_shape(logits, tokens.shape(0) + 1, logits.shape(1), "logits");
    require_shape(q, tokens.shape(0), q.shape(1), "probabilities of q");
    if (ids) {
        proposals.ids = view_of<int32_t>(*ids, 2, "accept: ids of q");
        require_shape(*ids, q.shape(0), q.shape(1), "ids of q");
    }
    const auto seen = view_of<int32_t>(history, 1, "accept: history");
    const Acceptance by = rule_of(rule);
    py::gil_scoped_release release;
    const AcceptResult result = accept(by, sampler, rows, proposals, seen, rng);
    return {result.accepted, result.token};
}

}  // namespace

void register_acceptance(py::module_& m) {
    m.def("accept", &accept_proposals, py::arg("rule"), py::arg("sampler"), py::arg("logits"), py::arg("tokens"),
          py::arg("q"), py::arg("ids"), py::arg("history"), py::arg("rng"),
          "How many of the k proposals are accepted, and the token after them. The rule is \"token\", \"match\" or\n"
          "\"block\"; float32 logits [k + 1, vocab], int32 tokens [k], float32 q [k, vocab], or [k, candidates] with\n"
          "int32 ids [k, candidates]; int32 history up to and including the anchor. Raises RequestError for what does\n"
          "not fit, BackendError for NaN logits.");
}

}  // namespace ds4::bindings
