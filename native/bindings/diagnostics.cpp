#include "ds4/diagnostics.h"

#include <pybind11/stl.h>

#include "module.h"
#include "session_arguments.h"

namespace py = pybind11;

namespace ds4::bindings {
namespace {

void register_node_times(py::module_& m) {
    py::class_<NodeTime>(m, "NodeTime", "The time of one node of a forward that ran by itself.")
        .def_readonly("op", &NodeTime::op, "ggml's name of the operation.")
        .def_readonly("leaves", &NodeTime::leaves, "Names of what it reads that no node made: weights, state, inputs.")
        .def_readonly("sources", &NodeTime::sources, "Indices of the nodes it reads.")
        .def_readonly("seconds", &NodeTime::seconds, "Seconds that it took; 0 for a view.")
        .def_readonly("experts", &NodeTime::experts,
                      "Experts that it reads; 0 for a node that does not choose among experts.");
}

void register_graph_statistics(py::module_& m) {
    using G = GraphStatistics;
    py::class_<G>(m, "GraphStatistics", "Statistics of one graph that a session keeps.")
        .def_readonly("kind", &G::kind, "\"forward\" or \"draft\".")
        .def_readonly("rows", &G::rows, "Rows that it computes.")
        .def_readonly("nodes", &G::nodes, "Nodes, views not counted.")
        .def_readonly("splits", &G::splits, "Runs of nodes on one device; 1 for a graph that one device computes.")
        .def_readonly("devices", &G::devices, "Nodes that each device computes.")
        .def_readonly("cpu_ops", &G::cpu_ops, "Nodes that the CPU computes beside other devices, by ggml's names.")
        .def_readonly("addresses", &G::addresses, "A hash of the addresses of all nodes, which never changes.")
        .def_readonly("bytes", &G::bytes, "Memory that it runs in, on all devices.");
}

void register_traffic(py::module_& m) {
    py::class_<TrafficCount>(m, "TrafficCount", "Bytes between host and device so far.")
        .def_readonly("to_device", &TrafficCount::to_device, "Inputs of graphs.")
        .def_readonly("to_host", &TrafficCount::to_host, "What was read of the outputs of graphs.");
}

void register_draft_trace(py::module_& m) {
    py::class_<DraftTrace>(m, "DraftTrace", "Intermediate results of a draft.")
        .def_property_readonly(
            "hidden", [](const DraftTrace& t) { return table(t.hidden, t.rows); },
            "Collapsed streams before the last norm, float32 [block, hidden].")
        .def_property_readonly(
            "base", [](const DraftTrace& t) { return table(t.base, t.rows); },
            "Logits without the Markov bias, float32 [block, vocab].");
}

}  // namespace

void register_diagnostics(py::module_& m) {
    using D = SessionDiagnostics;
    register_node_times(m);
    register_graph_statistics(m);
    register_traffic(m);
    register_draft_trace(m);
    py::class_<D>(m, "SessionDiagnostics", "What a session did and keeps, for tests and benchmarks.")
        .def_property_readonly("traffic", &D::traffic,
                               "Bytes between host and device so far. What the scheduler copies for nodes that the\n"
                               "device cannot compute is not counted.")
        .def(
            "graphs",
            [](const D& d) {
                std::vector<GraphStatistics> found;
                run([&] { found = d.graphs(); });
                return found;
            },
            "The graphs that the session keeps, the most recently used first.")
        .def(
            "node_times",
            [](D& d, const Tokens& tokens) {
                const auto ids = view(tokens);
                std::vector<NodeTime> found;
                run([&] { found = d.node_times(ids); });
                return found;
            },
            py::arg("tokens"),
            "Runs the nodes of a verify one by one, in order, each timed with the wait for it. Drops the rows, and\n"
            "those verified before.")
        .def(
            "draft_trace",
            [](const D& d) {
                DraftTrace found;
                run([&] { found = d.draft_trace(); });
                return found;
            },
            "What the latest draft computed on the way. Raises RequestError when nothing has been drafted yet.");
}

}  // namespace ds4::bindings
