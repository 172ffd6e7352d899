#pragma once
// Connections to RPC servers, and the lock that whoever talks on one holds.

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace ds4::backend {

/// Says whether a wait is to end with Cancelled; called every 20 ms.
using StopWaiting = std::function<bool()>;

/// Sets what waits ask that no session answers for: loading, opening and measuring. Programs that have signals of their
/// own to look at set it once, before any model is loaded.
void set_stop_waiting(StopWaiting stop);

/// Holds the connections to some RPC servers. ggml's client has one socket for each server and no lock, so the bytes of
/// two calls would mix. A thread may hold a connection several times. Several connections are taken in the order of
/// their names, so that no two threads wait for each other.
///
/// As long as a lock is held, signals do not interrupt system calls: ggml ends the process when one is interrupted.
class ConnectionLock {
   public:
    /// Waits until all connections to `endpoints` ("HOST:PORT", sorted) are free. Throws Cancelled when `stop` says so;
    /// without one, what set_stop_waiting set is asked.
    explicit ConnectionLock(const std::vector<std::string>& endpoints, const StopWaiting& stop = {});
    /// Waits without an end, as destructors do.
    static ConnectionLock for_destructor(const std::vector<std::string>& endpoints);

   private:
    using Mutex = std::recursive_timed_mutex;
    ConnectionLock() = default;
    std::vector<std::unique_lock<Mutex>> held_;
};

/// "HOST:PORT" of the servers of the remote ones among `devices`, sorted.
std::vector<std::string> endpoints_of(std::span<const ggml_backend_dev_t> devices);

/// Connections that stay open as long as a copy of this exists. Empty for devices of this machine.
class Connections {
   public:
    Connections() = default;
    /// Connects to the servers of the remote ones among `devices`. Throws BackendError when a server gives no memory.
    explicit Connections(std::span<const ggml_backend_dev_t> devices);

    /// "HOST:PORT" of each server, sorted.
    const std::vector<std::string>& endpoints() const { return endpoints_; }

   private:
    std::vector<std::string> endpoints_;
    std::vector<std::shared_ptr<void>> open_;
};

}  // namespace ds4::backend
