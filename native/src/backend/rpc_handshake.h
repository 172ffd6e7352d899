#pragma once
// The first exchange of ggml's RPC protocol, with time limits: whether a server is there and speaks our version.

#include <string>

namespace ds4::backend {

struct Endpoint {
    std::string name;  // "HOST:PORT"
    std::string host;
    int port;
};

/// Connects, says hello, and hangs up. Throws BackendError saying what to do where there is no such host, nobody
/// listens, nobody answers within some seconds, or the answer is not that of a server of our version.
void handshake(const Endpoint& endpoint);

}  // namespace ds4::backend
