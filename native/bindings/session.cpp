#include "ds4/session.h"

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "drafter/hyperparameters.h"
#include "model/hyperparameters.h"
#include "module.h"
#include "running.h"

namespace py = pybind11;

namespace ds4::bindings {

namespace {

using Tokens = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;
using Progress = std::function<void(int64_t, int64_t)>;

/// Runs `call` without the GIL, Ctrl-C stopping it at once.
template <typename F>
void run(F call) {
    try {
        RunningCall running;
        const py::gil_scoped_release release;
        try {
            call();
        } catch (...) {
            running.done();
            throw;
        }
        running.done();
    } catch (const Cancelled&) {
        if (PyErr_Occurred()) throw py::error_already_set();
        throw;
    }
}

StepProgress stepping(const Progress& progress) {
    if (!progress) return {};
    return [&progress](int64_t done, int64_t total) {
        py::gil_scoped_acquire gil;
        progress(done, total);
    };
}

std::span<const int32_t> view(const Tokens& tokens) {
    if (tokens.ndim() != 1) {
        throw RequestError("tokens have " + std::to_string(tokens.ndim()) +
                           " dimensions, wanted a flat sequence of ids");
    }
    return {tokens.data(), static_cast<size_t>(tokens.size())};
}

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
    return interruptible(
        std::make_unique<Session>(std::move(model), SessionOptions{context, kv_type(kv_dtype)}, std::move(drafter)));
}

py::array_t<float> evaluate(Session& s, const Tokens& tokens, const Progress& progress) {
    const auto ids = view(tokens);
    const py::ssize_t vocab = s.model().hyperparameters().vocab;
    py::array_t<float> out({static_cast<py::ssize_t>(ids.size()), vocab});
    std::span<float> rows(out.mutable_data(), static_cast<size_t>(out.size()));
    run([&] { s.evaluate(ids, rows, stepping(progress)); });
    return out;
}

/// A copy of `data` as an array of `rows` rows; None when there is nothing.
template <typename T>
py::object table(const std::vector<T>& data, size_t rows) {
    if (data.empty()) return py::none();
    py::array_t<T> out({rows, data.size() / rows});
    std::ranges::copy(data, out.mutable_data());
    return out;
}

template <typename T>
py::object column(const std::vector<T>& data) {
    if (data.empty()) return py::none();
    return py::array_t<T>(static_cast<py::ssize_t>(data.size()), data.data());
}

py::dict draft(Session& s, int32_t anchor, int64_t shortlist, Sampler* sampler, Rng* rng, bool read_q) {
    DraftBlock block;
    run([&] { block = s.draft(anchor, {shortlist, sampler, rng, read_q}); });
    py::dict out;
    out["tokens"] = column(block.tokens);
    out["confidence"] = column(block.confidence);
    out["q_probs"] = table(block.q, block.tokens.size());
    out["q_ids"] = table(block.ids, block.tokens.size());
    out["held"] = block.held;
    return out;
}

py::object held_q(Session& s, uint64_t draft) {
    std::vector<float> q;
    run([&] { q = s.held_q(draft); });
    return table(q, static_cast<size_t>(s.drafter()->hyperparameters().block));
}

std::pair<int32_t, int32_t> judge(Session& s, float temperature, Rng* rng, uint64_t held) {
    Verdict verdict{};
    run([&] { verdict = s.judge({temperature, rng, held}); });
    return {verdict.accepted, verdict.token};
}

py::dict traffic(const Session& s) {
    const TrafficCount count = s.traffic();
    py::dict out;
    out["to_device"] = count.to_device;
    out["to_host"] = count.to_host;
    return out;
}

py::dict draft_trace(const Session& s) {
    const DraftTrace trace = s.draft_trace();
    const auto rows = static_cast<size_t>(s.drafter()->hyperparameters().block);
    py::dict out;
    out["hidden"] = table(trace.hidden, rows);
    out["base"] = table(trace.base, rows);
    return out;
}

std::vector<py::dict> graphs(const Session& s) {
    std::vector<py::dict> out;
    for (const GraphFacts& facts : s.graphs()) {
        py::dict& one = out.emplace_back();
        one["kind"] = facts.kind;
        one["rows"] = facts.rows;
        one["nodes"] = facts.nodes;
        one["splits"] = facts.splits;
        one["devices"] = facts.devices;
        one["cpu_ops"] = facts.cpu_ops;
        one["addresses"] = facts.addresses;
        one["bytes"] = facts.bytes;
    }
    return out;
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

}  // namespace

void register_session(py::module_& m) {
    py::module_::import("atexit").attr("register")(
        py::cpp_function(&end_calls, py::call_guard<py::gil_scoped_release>()));
    m.def(
        "read_saved_session",
        [](const std::string& path) {
            const SavedSession saved = read_saved_session(path);
            py::dict out;
            out["model"] = saved.model;
            out["drafter"] = saved.drafter;
            out["context"] = saved.context;
            out["checkpoints"] = saved.checkpoints;
            out["tokens"] = py::array_t<int32_t>(static_cast<py::ssize_t>(saved.tokens.size()), saved.tokens.data());
            return out;
        },
        py::arg("path"),
        "What the beginning of a saved session says: {model, drafter, context, checkpoints, tokens int32 [n]}.\n"
        "Raises FormatError.");
    py::class_<NodeTime>(m, "NodeTime", "One node of a forward that ran by itself.")
        .def_readonly("op", &NodeTime::op, "ggml's name of the operation.")
        .def_readonly("leaves", &NodeTime::leaves,
                      "What it reads that no node made: weights by their names, state, inputs.")
        .def_readonly("sources", &NodeTime::sources, "The nodes it reads, by index.")
        .def_readonly("seconds", &NodeTime::seconds, "0 for a view.")
        .def_readonly("experts", &NodeTime::experts,
                      "Of a node that reads experts: how many; 0 where it does not choose among them.");
    py::class_<Session>(m, "Session", "The native state of one conversation.")
        .def(py::init(&open), py::arg("model"), py::kw_only(), py::arg("context"), py::arg("kv_dtype") = "f16",
             py::arg("drafter") = nullptr)
        .def_property_readonly("context", &Session::context)
        .def_property_readonly("kv_dtype", [](const Session& s) { return std::string(ggml_type_name(s.kv_type())); })
        .def_property_readonly("position", &Session::position)
        .def_property_readonly(
            "tokens",
            [](const Session& s) {
                const auto ids = s.tokens();
                return py::array_t<int32_t>(static_cast<py::ssize_t>(ids.size()), ids.data());
            },
            "A copy of the ids in the state, int32 [position].")
        .def(
            "prefill",
            [](Session& s, const Tokens& tokens, const Progress& progress, const std::vector<int64_t>& checkpoints) {
                const auto ids = view(tokens);
                run([&] { s.prefill(ids, stepping(progress), checkpoints); });
            },
            py::arg("tokens"), py::arg("progress") = nullptr, py::kw_only(),
            py::arg("checkpoints") = std::vector<int64_t>{})
        .def("evaluate", &evaluate, py::arg("tokens"), py::arg("progress") = nullptr,
             "Extends the state; returns the logits of every row, float32 [n, vocab].")
        .def(
            "logits",
            [](Session& s) {
                std::span<const float> row;
                run([&] { row = s.logits(); });
                return py::array_t<float>(static_cast<py::ssize_t>(row.size()), row.data());
            },
            "The logits of the frontier, float32 [vocab].")
        .def(
            "sample",
            [](Session& s, Sampler& sampler, Rng& rng) {
                int32_t token = 0;
                run([&] { token = s.sample(sampler, rng); });
                return token;
            },
            py::arg("sampler"), py::arg("rng"))
        .def(
            "draft", &draft, py::arg("anchor"), py::kw_only(), py::arg("shortlist") = 0, py::arg("sampler") = nullptr,
            py::arg("rng") = nullptr, py::arg("read_q") = true,
            "Proposes a block after `anchor`: {tokens int32 [block], confidence float32 [block] or None,\n"
            "q_probs float32 [block, width] or None for arg max proposals, q_ids int32 [block, width] or None for the\n"
            "whole vocabulary, held}. A sampler draws from q, with `rng`; without one the proposals are the arg max.\n"
            "`held` is the number of a draft whose q is on the device, where it stays without `read_q`; else 0.")
        .def("held_q", &held_q, py::arg("draft"),
             "q float32 [block, vocab] of a draft on the device; RequestError after the next one.")
        .def("draft_trace", &draft_trace,
             "What the latest draft computed on the way: {hidden [block, hidden], base [block, vocab]}.")
        .def("verify", &verify, py::arg("tokens"),
             "Logits float32 [rows, vocab] of 1 to 16 rows at the frontier, which stays; a view that is valid until "
             "the\n"
             "session's next call.")
        .def(
            "verify_unread",
            [](Session& s, const Tokens& tokens) {
                const auto ids = view(tokens);
                run([&] { s.verify_unread(ids); });
            },
            py::arg("tokens"), "The same, but the logits stay on the device, for judge().")
        .def(
            "judge", &judge, py::kw_only(), py::arg("temperature"), py::arg("rng") = nullptr, py::arg("held") = 0,
            "Judges the verified rows' proposals on the device, one by one: how many stand, and the token after them.\n"
            "`held` is the draft they were drawn in; 0: q is 1 at each.")
        .def_property_readonly("judges", &Session::judges, "Whether the device has kernels that judge.")
        .def_property_readonly("drafts_on_device", &Session::drafts_on_device,
                               "Whether the device's own kernels draw whole vocabularies.")
        .def("kernel_choice", &Session::kernel_choice,
             "The implementation of each op on the device of the head and the drafter, a line each: \"attention: own\n"
             "(avx2)\", \"attention: ggml\".")
        .def("ops", &Session::ops,
             "Who computes what a device may have kernels of our own for, by name: \"own (CUDA)\", \"ggml\", \"host\".")
        .def(
            "traffic", &traffic,
            "Bytes between host and device so far: {to_device, to_host}. What the scheduler copies for nodes that the\n"
            "device cannot compute is not among them.")
        .def("commit", &Session::commit, py::arg("rows"), "Puts the first `rows` verified rows into the state.")
        .def(
            "node_times",
            [](Session& s, const Tokens& tokens) {
                const auto ids = view(tokens);
                std::vector<NodeTime> found;
                run([&] { found = s.node_times(ids); });
                return found;
            },
            py::arg("tokens"),
            "Runs the nodes of a verify one by one, in order, each timed with the wait for it.\n"
            "The rows are dropped, and those verified before.")
        .def("graphs", &graphs,
             "The graphs kept now, those used last first, each {kind, rows, nodes, splits, devices: nodes by device,\n"
             "cpu_ops: what the CPU computes where other devices do, too, addresses: a number that never changes,\n"
             "bytes: of the memory that it runs in}.")
        .def(
            "rewind",
            [](Session& s, int64_t position, const Progress& progress) {
                run([&] { s.rewind(position, stepping(progress)); });
            },
            py::arg("position"), py::arg("progress") = nullptr)
        .def("resume_point", &Session::resume_point, py::arg("position"),
             "Where evaluating would have to begin to go back to a position.")
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
                py::gil_scoped_release release;
                s.save(path, checkpoints);
            },
            py::arg("path"), py::kw_only(), py::arg("checkpoints") = std::vector<int64_t>{})
        .def_static(
            "load",
            [](std::shared_ptr<Model> model, const std::string& path, std::shared_ptr<Drafter> drafter,
               std::optional<int64_t> context) {
                std::unique_ptr<Session> session;
                {
                    py::gil_scoped_release release;
                    session = Session::load(std::move(model), path, std::move(drafter), context);
                }
                return interruptible(std::move(session));
            },
            py::arg("model"), py::arg("path"), py::kw_only(), py::arg("drafter") = nullptr,
            py::arg("context") = std::nullopt)
        .def("cancel", &Session::cancel)
        .def("clear_cancel", &Session::clear_cancel);
}

}  // namespace ds4::bindings
