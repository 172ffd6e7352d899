#pragma once
// Devices of another process or machine, through ggml's RPC backend.

#include <memory>
#include <string>

#include "ggml-backend.h"

namespace ds4::backend {

/// Returns whether the name of a device is that of an RPC server: "rpc:HOST:PORT".
bool is_remote(const std::string& name);

/// Returns the first device of the server named "rpc:HOST:PORT", asked for under the connection's lock. Throws
/// RequestError for a name that is not like this, BackendError saying what to do when nobody answers there within some
/// seconds, or something else does.
ggml_backend_dev_t remote_device(const std::string& name);

/// Keeps the connection to a remote device open as long as the result exists; see Connections, which holds the lock. A
/// server answers nobody else meanwhile. Null for a device of this machine. Throws BackendError when the server gives
/// no memory.
std::shared_ptr<void> keep_connected(ggml_backend_dev_t device);

/// Returns "HOST:PORT" of an RPC device, and an empty string for any other.
std::string endpoint_of(ggml_backend_dev_t device);

/// Serves a device of this machine at "HOST:PORT" with `threads` threads. Returns only by throwing: RequestError for a
/// malformed address or fewer than 1 thread, BackendError when the server stops.
[[noreturn]] void serve_device(const std::string& endpoint, ggml_backend_dev_t device, int threads);

}  // namespace ds4::backend
