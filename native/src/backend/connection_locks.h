#pragma once
// Locks for connections to RPC servers. ggml's client has one socket an endpoint and knows no threads.

#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace ds4::backend {

/// The locks of the connections that some devices are reached by, one an endpoint of this process. Devices of this
/// machine have none. Whoever speaks to the devices, or frees memory there, holds them.
class ConnectionLocks {
   public:
    using Lock = std::recursive_timed_mutex;  // a session's end may end its model, which holds them, too
    using Held = std::vector<std::unique_lock<Lock>>;

    ConnectionLocks() = default;
    /// From then on SIGINT and SIGTERM restart system calls, where one of the devices is remote: ggml ends the process
    /// when one is interrupted.
    explicit ConnectionLocks(std::span<const ggml_backend_dev_t> devices);
    /// That of one endpoint, HOST:PORT.
    explicit ConnectionLocks(const std::string& endpoint);

    /// Waits for all of them, in the same order everywhere. Never with the interpreter's lock of Python held.
    [[nodiscard]] Held hold() const;
    /// The same, and asks every few milliseconds of a wait: what `stop` throws ends it.
    [[nodiscard]] Held hold(const std::function<void()>& stop) const;

   private:
    void add(std::vector<std::string> endpoints);

    std::vector<Lock*> locks_;  // ordered by the endpoints' names
};

}  // namespace ds4::backend
