#pragma once
// The first message of ggml's RPC protocol and its answer, with time limits. ggml itself has none.

#include <string>

namespace ds4::backend {

/// The address of an RPC server.
struct Endpoint {
    std::string name;  // "HOST:PORT"
    std::string host;
    int port;
};

/// Connects, exchanges the hello message, and disconnects. Throws BackendError saying what to do when the host is
/// unknown, nobody listens or answers within some seconds, or the answer is not that of a server of this protocol
/// version.
void handshake(const Endpoint& endpoint);

}  // namespace ds4::backend
