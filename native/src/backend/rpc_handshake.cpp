#include "backend/rpc_handshake.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "ds4/errors.h"
#include "ggml-rpc.h"

namespace ds4::backend {
namespace {

constexpr int kTimeoutMs = 3000;

/// Bytes of the capabilities in ggml's hello message: transports besides TCP that a side supports, all zero for none.
constexpr size_t kCapabilities = 24;
constexpr uint8_t kHello = 14;

class Socket {
   public:
    explicit Socket(int fd) : fd_(fd) {}
    ~Socket() {
        if (fd_ >= 0) ::close(fd_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    operator int() const { return fd_; }

   private:
    int fd_;
};

[[noreturn]] void fail(const Endpoint& e, const std::string& what) {
    throw BackendError("RPC server " + e.name + ": " + what);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Resolves the host to IPv4 addresses, the only ones that ggml connects to. Throws BackendError when there are none.
Addresses resolve(const Endpoint& e) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    const int error = ::getaddrinfo(e.host.c_str(), std::to_string(e.port).c_str(), &hints, &found);
    if (error) fail(e, "there is no host '" + e.host + "' (" + ::gai_strerror(error) + ")");
    return {found, ::freeaddrinfo};
}

bool ready(int fd, short event) {
    pollfd descriptor{fd, event, 0};
    return ::poll(&descriptor, 1, kTimeoutMs) > 0;
}

void connect(const Endpoint& e, int fd) {
    const Addresses addresses = resolve(e);
    int error = ::connect(fd, addresses->ai_addr, addresses->ai_addrlen) ? errno : 0;
    if (error == EINPROGRESS) {
        if (!ready(fd, POLLOUT)) fail(e, "no connection within " + std::to_string(kTimeoutMs / 1000) + " s");
        socklen_t size = sizeof error;
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error) fail(e, std::string(std::strerror(error)) + ": start a server there, and check host and port");
}

void receive(const Endpoint& e, int fd, char* to, size_t size) {
    while (size > 0) {
        if (!ready(fd, POLLIN)) {
            fail(e, "connected, but no answer within " + std::to_string(kTimeoutMs / 1000) +
                        " s: a server serves one process at a time, so end the one it serves now, or start another");
        }
        const ssize_t got = ::recv(fd, to, size, 0);
        if (got <= 0) fail(e, "hung up instead of answering: something else listens there, or an incompatible version");
        to += got, size -= static_cast<size_t>(got);
    }
}

}  // namespace

void handshake(const Endpoint& e) {
    const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
    if (socket < 0) fail(e, "no socket: " + std::string(std::strerror(errno)));
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
    connect(e, socket);
    std::array<char, 1 + sizeof(uint64_t) + kCapabilities> hello{};
    const uint64_t length = kCapabilities;
    hello[0] = kHello;
    std::memcpy(hello.data() + 1, &length, sizeof length);
    if (::send(socket, hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) {
        fail(e, std::string(std::strerror(errno)));
    }
    uint64_t size = 0;
    std::array<char, 4 + kCapabilities> answer{};  // major, minor, patch, a padding byte, capabilities
    receive(e, socket, reinterpret_cast<char*>(&size), sizeof size);
    if (size != answer.size()) fail(e, "does not speak ggml's RPC protocol: something else listens there");
    receive(e, socket, answer.data(), answer.size());
    if (answer[0] == RPC_PROTO_MAJOR_VERSION && answer[1] <= RPC_PROTO_MINOR_VERSION) return;
    fail(e, "speaks version " + std::to_string(answer[0]) + "." + std::to_string(answer[1]) +
                " of the protocol, wanted " + std::to_string(RPC_PROTO_MAJOR_VERSION) + "." +
                std::to_string(RPC_PROTO_MINOR_VERSION) + ": start the server with the same version of ds4py");
}

}  // namespace ds4::backend
