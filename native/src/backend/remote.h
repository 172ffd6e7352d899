#pragma once
// Devices of another process or machine, by ggml's RPC protocol.

#include <memory>
#include <string>

#include "ggml-backend.h"

namespace ds4::backend {

/// Whether a device's name is that of an RPC server: "rpc:HOST:PORT".
bool is_remote(const std::string& name);

/// The first device of the server named "rpc:HOST:PORT". Throws RequestError for a name that is not like this,
/// BackendError saying what to do when nobody answers there within some seconds, or something else does.
ggml_backend_dev_t remote_device(const std::string& name);

/// Keeps the connection to a remote device open, on which its server answers nobody else. Whoever has memory there is
/// to hold it, so that the server is not greeted on a second connection. Null for a device of this machine. Called, and
/// let go of, with the device's lock (connection_locks.h) held.
std::shared_ptr<void> keep_connected(ggml_backend_dev_t device);

/// HOST:PORT of an RPC device; empty for any other.
std::string endpoint_of(ggml_backend_dev_t device);

/// Serves a device of this machine at "HOST:PORT", and returns only when that fails, by a BackendError.
[[noreturn]] void serve_device(const std::string& endpoint, ggml_backend_dev_t device, int threads);

}  // namespace ds4::backend
