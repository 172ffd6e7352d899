#include "ds4/diagnostics.h"

#include "drafter/hyperparameters.h"
#include "session_calls.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

std::vector<NodeTime> node_times(SessionDiagnostics& diagnostics, const Tokens& tokens) {
    const auto ids = view(tokens);
    std::vector<NodeTime> found;
    run([&] { found = diagnostics.node_times(ids); });
    return found;
}

DraftTrace draft_trace(const SessionDiagnostics& diagnostics) {
    DraftTrace trace;
    run([&] { trace = diagnostics.draft_trace(); });
    return trace;
}

void register_node_time(py::module_& m) {
    py::class_<NodeTime>(m, "NodeTime", "One node of a forward that ran by itself.")
        .def_readonly("op", &NodeTime::op, "ggml's name of the operation.")
        .def_readonly("leaves", &NodeTime::leaves,
                      "What it reads that no node made: weights by their names, state, inputs.")
        .def_readonly("sources", &NodeTime::sources, "The nodes it reads, by index.")
        .def_readonly("seconds", &NodeTime::seconds, "Its time, with the wait for it; 0 for a view.")
        .def_readonly("experts", &NodeTime::experts,
                      "How many experts it reads; 0 where it does not choose among them.");
}

void register_graph_statistics(py::module_& m) {
    using G = GraphStatistics;
    py::class_<G>(m, "GraphStatistics", "One of the graphs that a session keeps.")
        .def_readonly("kind", &G::kind, "\"forward\" or \"draft\".")
        .def_readonly("rows", &G::rows, "Rows of one run.")
        .def_readonly("nodes", &G::nodes, "Nodes that compute; views are not counted.")
        .def_readonly("splits", &G::splits, "Runs of nodes on one device; 1 on a device that computes all.")
        .def_readonly("devices", &G::devices, "Nodes by the device that computes them.")
        .def_readonly("cpu_ops", &G::cpu_ops, "Nodes of the CPU by ggml's names, where other devices compute, too.")
        .def_readonly("addresses", &G::addresses, "The addresses of all nodes as one number, which never changes.")
        .def_readonly("bytes", &G::bytes, "Bytes of the memory that it runs in, on all devices.");
}

void register_traces(py::module_& m) {
    py::class_<TrafficCount>(m, "TrafficCount", "Bytes that a session has moved between host and device.")
        .def_readonly("to_device", &TrafficCount::to_device, "Bytes of inputs.")
        .def_readonly("to_host", &TrafficCount::to_host, "Bytes that were read of outputs.");
    py::class_<DraftTrace>(m, "DraftTrace", "What a draft computed on the way.")
        .def_property_readonly(
            "hidden", [](const DraftTrace& t) { return table(t.hidden, t.rows).value(); },
            "Collapsed streams before the last norm, float32 [block, hidden].")
        .def_property_readonly(
            "base", [](const DraftTrace& t) { return table(t.base, t.rows).value(); },
            "Logits without the Markov bias, float32 [block, vocab].");
}

}  // namespace

void register_diagnostics(py::module_& m, SessionClass& session) {
    using D = SessionDiagnostics;
    register_node_time(m);
    register_graph_statistics(m);
    register_traces(m);
    py::class_<D>(m, "SessionDiagnostics", "A view of a session for tests and measurements.")
        .def_property_readonly("traffic", &D::traffic,
                               "Bytes between host and device so far. What the scheduler copies for nodes that the\n"
                               "device cannot compute is not among them.")
        .def("graphs", &D::graphs, "Returns the graphs that are kept now, those used last first.")
        .def("node_times", &node_times, py::arg("tokens"),
             "Runs the nodes of a verify one by one, in order, each timed with the wait for it. The rows are dropped,\n"
             "and those verified before. Raises RequestError for tokens that do not fit, Cancelled.")
        .def("draft_trace", &draft_trace,
             "Reads what the latest draft computed on the way. Raises RequestError where nothing has been drafted.");
    session.def_property_readonly("diagnostics",
                                  py::cpp_function([](Session& s) { return s.diagnostics(); }, py::keep_alive<0, 1>()),
                                  "What the session can tell of its graphs and copies.");
}

}  // namespace ds4::bindings
