#include "ds4/session.h"

#include "model/hyperparameters.h"
#include "module.h"
#include "session_calls.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

std::unique_ptr<Session> interruptible(std::unique_ptr<Session> session) {
    session->set_interrupt([] {
        if (python_ends()) return true;
        py::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    });
    return session;
}

std::unique_ptr<Session> open(std::shared_ptr<Model> model, int64_t context, const std::string& kv_dtype,
                              std::shared_ptr<Drafter> drafter) {
    const SessionOptions options{context, kv_type(kv_dtype)};
    std::unique_ptr<Session> session;
    {
        const py::gil_scoped_release release;
        session = std::make_unique<Session>(std::move(model), options, std::move(drafter));
    }
    return interruptible(std::move(session));
}

py::array_t<float> evaluate(Session& s, const Tokens& tokens, const Progress& progress) {
    const auto ids = view(tokens);
    const py::ssize_t vocab = s.model().hyperparameters().vocab;
    py::array_t<float> out({static_cast<py::ssize_t>(ids.size()), vocab});
    std::span<float> rows(out.mutable_data(), static_cast<size_t>(out.size()));
    run([&] { s.evaluate(ids, rows, stepping(progress)); });
    return out;
}

void prefill(Session& s, const Tokens& tokens, const Progress& progress, const std::vector<int64_t>& checkpoints) {
    const auto ids = view(tokens);
    run([&] { s.prefill(ids, stepping(progress), checkpoints); });
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

void rewind(Session& s, int64_t position, const Progress& progress) {
    run([&] { s.rewind(position, stepping(progress)); });
}

void copy_from(Session& s, const Session& source, int64_t position, const Progress& progress) {
    run([&] { s.copy_from(source, position, stepping(progress)); });
}

void save(Session& s, const std::string& path, const std::vector<int64_t>& checkpoints) {
    run([&] { s.save(path, checkpoints); });
}

std::unique_ptr<Session> load(std::shared_ptr<Model> model, const std::string& path, std::shared_ptr<Drafter> drafter,
                              std::optional<int64_t> context) {
    std::unique_ptr<Session> session;
    {
        const py::gil_scoped_release release;
        session = Session::load(std::move(model), path, std::move(drafter), context);
    }
    return interruptible(std::move(session));
}

py::array_t<int32_t> ids_of(const std::vector<int32_t>& ids) {
    return py::array_t<int32_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
}

py::dict saved_session(const std::string& path) {
    const SavedSession saved = read_saved_session(path);
    py::dict out;
    out["model"] = saved.model;
    out["drafter"] = saved.drafter;
    out["context"] = saved.context;
    out["checkpoints"] = saved.checkpoints;
    out["tokens"] = ids_of(saved.tokens);
    return out;
}

void register_properties(SessionClass& session) {
    session.def_property_readonly("context", &Session::context, "Positions that the session can hold.")
        .def_property_readonly(
            "kv_dtype", [](const Session& s) { return std::string(ggml_type_name(s.kv_type())); },
            "Type of cached keys: \"f16\" or \"f32\".")
        .def_property_readonly("position", &Session::position, "The frontier: how many positions are in the state.")
        .def_property_readonly(
            "tokens", [](const Session& s) { return ids_of(s.tokens()); },
            "A copy of the ids in the state, int32 [position].")
        .def_property_readonly("checkpoints", &Session::checkpoints, "Positions of the checkpoints, ascending.")
        .def("ops", &Session::ops,
             "Returns who computes what a device may have kernels of our own for, by name: \"own (CUDA)\", \"ggml\",\n"
             "\"host\".")
        .def("cancel", &Session::cancel,
             "Stops the running call, or the next one, with Cancelled. Any thread may call it.")
        .def("clear_cancel", &Session::clear_cancel, "Takes back a cancel that no call has answered yet.");
}

void register_state(SessionClass& session) {
    session
        .def("prefill", &prefill, py::arg("tokens"), py::arg("progress") = nullptr, py::kw_only(),
             py::arg("checkpoints") = std::vector<int64_t>{},
             "Extends the state by tokens, keeping the logits of the last. Going back to the ascending positions in\n"
             "`checkpoints` is fast later. progress(done, total) may throw, which stops the call. Raises RequestError\n"
             "for ids outside the vocabulary and where the context is too short, Cancelled, BackendError.")
        .def("evaluate", &evaluate, py::arg("tokens"), py::arg("progress") = nullptr,
             "Extends the state; returns the logits of every row, float32 [n, vocab].")
        .def("logits", &logits, "Returns the logits of the frontier, float32 [vocab].")
        .def("sample", &sample, py::arg("sampler"), py::arg("rng"),
             "Draws what follows the last token; the state is not extended.")
        .def("rewind", &rewind, py::arg("position"), py::arg("progress") = nullptr,
             "Shortens the state to a position, evaluating again from the nearest checkpoint where that is needed.")
        .def("resume_point", &Session::resume_point, py::arg("position"),
             "Returns where evaluating would have to begin to go back to a position.")
        .def("copy_from", &copy_from, py::arg("source"), py::arg("position"), py::arg("progress") = nullptr,
             "Becomes what another session was at a position. After a cancel it is empty.");
}

void register_saving(py::module_& m, SessionClass& session) {
    m.def("read_saved_session", &saved_session, py::arg("path"),
          "Reads the beginning of a saved session: {model, drafter, context, checkpoints, tokens int32 [n]}.\n"
          "Raises FormatError.");
    session
        .def("save", &save, py::arg("path"), py::kw_only(), py::arg("checkpoints") = std::vector<int64_t>{},
             "Writes the state and the checkpoints at these positions to a file.")
        .def_static("load", &load, py::arg("model"), py::arg("path"), py::kw_only(), py::arg("drafter") = nullptr,
                    py::arg("context") = std::nullopt,
                    "Continues from a saved state. Raises FormatError where it is damaged or of another model.");
}

}  // namespace

void register_session(py::module_& m) {
    py::module_::import("atexit").attr("register")(
        py::cpp_function(&end_calls, py::call_guard<py::gil_scoped_release>()));
    SessionClass session(m, "Session", "The native state of one conversation, for one thread at a time.",
                         py::release_gil_before_calling_cpp_dtor());
    register_speculative_steps(m, session);
    register_diagnostics(m, session);
    register_properties(session);
    register_state(session);
    register_saving(m, session);
    session.def(py::init(&open), py::arg("model"), py::kw_only(), py::arg("context"), py::arg("kv_dtype") = "f16",
                py::arg("drafter") = nullptr);
}

}  // namespace ds4::bindings
