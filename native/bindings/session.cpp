#include <pybind11/stl.h>

#include "backend/rpc_connection.h"
#include "ds4/diagnostics.h"
#include "model/hyperparameters.h"
#include "module.h"
#include "session_arguments.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

using SessionPointer = std::unique_ptr<Session, DeleteUnlocked>;

SessionPointer interruptible(std::unique_ptr<Session> session) {
    session->set_interrupt(&interrupted);
    return SessionPointer(session.release());
}

SessionPointer open(std::shared_ptr<Model> model, int64_t context, const std::string& kv_dtype,
                    std::shared_ptr<Drafter> drafter) {
    const SessionOptions options{context, kv_type(kv_dtype)};
    std::unique_ptr<Session> session;
    run([&] { session = std::make_unique<Session>(std::move(model), options, std::move(drafter)); });
    return interruptible(std::move(session));
}

SessionPointer load(std::shared_ptr<Model> model, const std::string& path, std::shared_ptr<Drafter> drafter,
                    std::optional<int64_t> context) {
    std::unique_ptr<Session> session;
    run([&] { session = Session::load(std::move(model), path, std::move(drafter), context); });
    return interruptible(std::move(session));
}

void prefill(Session& s, const Tokens& tokens, const Progress& progress, const std::vector<int64_t>& checkpoints) {
    const auto ids = view(tokens);
    run([&] { s.prefill(ids, stepping(progress), checkpoints); });
}

py::array_t<float> evaluate(Session& s, const Tokens& tokens, const Progress& progress) {
    const auto ids = view(tokens);
    const py::ssize_t vocab = s.model().hyperparameters().vocab;
    py::array_t<float> out({static_cast<py::ssize_t>(ids.size()), vocab});
    std::span<float> rows(out.mutable_data(), static_cast<size_t>(out.size()));
    run([&] { s.evaluate(ids, rows, stepping(progress)); });
    return out;
}

py::array_t<float> logits(Session& s) {
    std::span<const float> row;
    run([&] { row = s.logits(); });
    return py::array_t<float>(static_cast<py::ssize_t>(row.size()), row.data());
}

int32_t sample(Session& s, Sampler& sampler, Rng& rng) {
    int32_t token = 0;
    run([&] { token = s.sample(sampler, rng); });
    return token;
}

py::array_t<int32_t> tokens(const Session& s) {
    const auto ids = s.tokens();
    return py::array_t<int32_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
}

void register_saved_session(py::module_& m) {
    py::class_<SavedSession>(m, "SavedSession", "The beginning of a saved session.")
        .def_readonly("model", &SavedSession::model, "Fingerprint of the model.")
        .def_readonly("drafter", &SavedSession::drafter, "Fingerprint of the drafter; 0 without one.")
        .def_readonly("context", &SavedSession::context, "Positions that the session could hold.")
        .def_readonly("checkpoints", &SavedSession::checkpoints, "Positions of the checkpoints, ascending.")
        .def_property_readonly(
            "tokens",
            [](const SavedSession& s) {
                return py::array_t<int32_t>(static_cast<py::ssize_t>(s.tokens.size()), s.tokens.data());
            },
            "Ids in the state, int32 [n].");
    m.def("read_saved_session", &read_saved_session, py::arg("path"), py::call_guard<py::gil_scoped_release>(),
          "Reads the beginning of a saved session; only loading it tells whether the rest is whole. Raises\n"
          "FormatError.");
}

void add_construction(SessionClass& session) {
    session
        .def(py::init(&open), py::arg("model"), py::kw_only(), py::arg("context"), py::arg("kv_dtype") = "f16",
             py::arg("drafter") = nullptr)
        .def_static("load", &load, py::arg("model"), py::arg("path"), py::kw_only(), py::arg("drafter") = nullptr,
                    py::arg("context") = std::nullopt)
        .def_property_readonly("context", &Session::context)
        .def_property_readonly("kv_dtype", [](const Session& s) { return std::string(ggml_type_name(s.kv_type())); })
        .def_property_readonly("position", &Session::position)
        .def_property_readonly("tokens", &tokens, "A copy of the ids in the state, int32 [position].")
        .def("ops", &Session::ops,
             "Which implementation computes what a device may have kernels of ds4's for: \"own (CUDA)\", \"ggml\",\n"
             "\"host\", by op.")
        .def("kernel_choice", &Session::kernel_choice,
             "The implementation of each op on the device of the head and the drafter, a line each: \"attention: own\n"
             "(avx2)\", \"attention: ggml\".")
        .def_property_readonly(
            "diagnostics", py::cpp_function([](Session& s) { return SessionDiagnostics(s); }, py::keep_alive<0, 1>()),
            "What the session did and keeps, for tests and benchmarks.");
}

void add_evaluation(SessionClass& session) {
    session
        .def("prefill", &prefill, py::arg("tokens"), py::arg("progress") = nullptr, py::kw_only(),
             py::arg("checkpoints") = std::vector<int64_t>{})
        .def("evaluate", &evaluate, py::arg("tokens"), py::arg("progress") = nullptr,
             "Extends the state; returns the logits of every row, float32 [n, vocab].")
        .def("logits", &logits, "The logits of the frontier, float32 [vocab].")
        .def("sample", &sample, py::arg("sampler"), py::arg("rng"))
        .def("cancel", &Session::cancel)
        .def("clear_cancel", &Session::clear_cancel);
}

void add_positions(SessionClass& session) {
    session
        .def(
            "rewind",
            [](Session& s, int64_t position, const Progress& progress) {
                run([&] { s.rewind(position, stepping(progress)); });
            },
            py::arg("position"), py::arg("progress") = nullptr)
        .def("resume_point", &Session::resume_point, py::arg("position"),
             "The position from which a rewind to `position` evaluates again.")
        .def_property_readonly("checkpoints", &Session::checkpoints, "Positions of the checkpoints, ascending.")
        .def(
            "copy_from",
            [](Session& s, const Session& source, int64_t position, const Progress& progress) {
                run([&] { s.copy_from(source, position, stepping(progress)); });
            },
            py::arg("source"), py::arg("position"), py::arg("progress") = nullptr,
            "Becomes what another session was at a position. After a cancel it is empty.")
        .def(
            "save",
            [](Session& s, const std::string& path, const std::vector<int64_t>& checkpoints) {
                run([&] { s.save(path, checkpoints); });
            },
            py::arg("path"), py::kw_only(), py::arg("checkpoints") = std::vector<int64_t>{});
}

}  // namespace

void register_session(py::module_& m) {
    py::module_::import("atexit").attr("register")(
        py::cpp_function(&end_calls, py::call_guard<py::gil_scoped_release>()));
    backend::set_stop_waiting(&interrupted);
    register_saved_session(m);
    register_draft_block(m);
    register_diagnostics(m);
    SessionClass session(m, "Session", "The native state of one conversation.");
    add_construction(session);
    add_evaluation(session);
    add_speculative_calls(session);
    add_positions(session);
}

}  // namespace ds4::bindings
