#pragma once
// Devices of another process or machine, through ggml's RPC backend.

#include <memory>
#include <string>

#include "ggml-backend.h"

namespace ds4::backend {

/// Returns whether the name of a device is that of an RPC server: "rpc:HOST:PORT".
bool is_remote(const std::string& name);

/// Returns the first device of the server "rpc:HOST:PORT". Throws RequestError for a malformed name, BackendError when
/// there is no answer within some seconds or something else listens there.
ggml_backend_dev_t remote_device(const std::string& name);

/// Keeps the connection to a remote device open until the result is released. The server answers nobody else meanwhile.
/// Whatever has memory on the device must hold the result, or a second connection is tried while the server is busy
/// with the first. Returns null for a device of this machine. Throws BackendError when the server gives no memory.
std::shared_ptr<void> keep_connected(ggml_backend_dev_t device);

/// Returns "HOST:PORT" of an RPC device, and an empty string for any other.
std::string endpoint_of(ggml_backend_dev_t device);

/// Serves a device of this machine at "HOST:PORT" with `threads` threads. Returns only by throwing: RequestError for a
/// malformed address or fewer than 1 thread, BackendError when the server stops.
[[noreturn]] void serve_device(const std::string& endpoint, ggml_backend_dev_t device, int threads);

}  // namespace ds4::backend
