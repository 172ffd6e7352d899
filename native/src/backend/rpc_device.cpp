#include "backend/rpc_device.h"

#include <charconv>
#include <map>
#include <mutex>

#include "backend/rpc_connection.h"
#include "backend/rpc_handshake.h"
#include "ds4/errors.h"
#include "ggml-rpc.h"

namespace ds4::backend {
namespace {

constexpr std::string_view kPrefix = "rpc:";

ggml_backend_reg_t rpc() {
    ggml_backend_reg_t reg = ggml_backend_reg_by_name("RPC");
    if (!reg) throw BackendError("this build has no RPC backend: build ggml with GGML_RPC=ON");
    return reg;
}

/// Returns a function of the RPC backend by name. A portable build loads the backend at run time.
template <typename F>
F rpc_function(const char* name) {
    return reinterpret_cast<F>(ggml_backend_reg_get_proc_address(rpc(), name));
}

/// Splits "HOST:PORT". ggml supports neither IPv6 addresses nor names of ports.
Endpoint parse(const std::string& endpoint) {
    const size_t colon = endpoint.find(':');
    Endpoint e{endpoint, endpoint.substr(0, colon), 0};
    if (colon != std::string::npos && colon > 0) {
        const char *first = endpoint.data() + colon + 1, *last = endpoint.data() + endpoint.size();
        const auto [end, error] = std::from_chars(first, last, e.port);
        if (error == std::errc() && end == last && e.port >= 1 && e.port <= 65535) return e;
    }
    throw RequestError("'" + endpoint + "' is not the address of an RPC server, wanted HOST:PORT, an IPv4 address or " +
                       "a name and a number from 1 to 65535");
}

/// The memory on each server that keeps its connection open, by endpoint.
struct OpenConnections {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<ggml_backend_buffer>> open;

    static OpenConnections& all() {
        static auto& connections = *new OpenConnections();  // a model may outlive static objects
        return connections;
    }
    /// The open connection to an endpoint; null when there is none.
    std::shared_ptr<ggml_backend_buffer> find(const std::string& endpoint) {
        const std::lock_guard lock(mutex);
        return open[endpoint].lock();
    }
    void add(const std::string& endpoint, const std::shared_ptr<ggml_backend_buffer>& connection) {
        const std::lock_guard lock(mutex);
        open[endpoint] = connection;
    }
};

}  // namespace

bool is_remote(const std::string& name) { return name.starts_with(kPrefix); }

ggml_backend_dev_t remote_device(const std::string& name) {
    const Endpoint endpoint = parse(name.substr(kPrefix.size()));
    const auto add = rpc_function<decltype(&ggml_backend_rpc_add_server)>("ggml_backend_rpc_add_server");
    const ConnectionLock lock({endpoint.name});
    // ggml ends the process when a server does not answer as it should, so a server is tried before.
    if (!OpenConnections::all().find(endpoint.name)) handshake(endpoint);
    ggml_backend_reg_t server = add(endpoint.name.c_str());
    if (!server || ggml_backend_reg_dev_count(server) == 0) {
        throw BackendError("the RPC server at " + endpoint.name + " offers no device");
    }
    return ggml_backend_reg_dev_get(server, 0);
}

std::shared_ptr<void> keep_connected(ggml_backend_dev_t device) {
    const std::string endpoint = endpoint_of(device);
    if (endpoint.empty()) return nullptr;
    if (const auto open = OpenConnections::all().find(endpoint)) return open;
    // ggml closes a connection when the last buffer on it is freed.
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(device);
    ggml_backend_buffer_t buffer = type ? ggml_backend_buft_alloc_buffer(type, 1) : nullptr;
    if (!buffer) throw BackendError("the RPC server at " + endpoint + " gives no memory");
    const std::shared_ptr<ggml_backend_buffer> kept(buffer, ggml_backend_buffer_free);
    OpenConnections::all().add(endpoint, kept);
    return kept;
}

std::string endpoint_of(ggml_backend_dev_t device) {
    const bool remote = ggml_backend_dev_backend_reg(device) == ggml_backend_reg_by_name("RPC");
    return remote ? ggml_backend_dev_description(device) : "";
}

void serve_device(const std::string& endpoint, ggml_backend_dev_t device, int threads) {
    parse(endpoint);
    if (threads < 1) throw RequestError("threads is " + std::to_string(threads) + ", wanted at least 1");
    const auto start = rpc_function<decltype(&ggml_backend_rpc_start_server)>("ggml_backend_rpc_start_server");
    start(endpoint.c_str(), nullptr, static_cast<size_t>(threads), 1, &device);
    throw BackendError("cannot serve at " + endpoint + ": is the port taken, or the address another machine's?");
}

}  // namespace ds4::backend
