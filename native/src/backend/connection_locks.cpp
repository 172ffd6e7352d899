#include "backend/connection_locks.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

#include "backend/remote.h"

namespace ds4::backend {
namespace {

constexpr std::chrono::milliseconds kPoll{10};

/// One an endpoint, as long as the process lives: whoever ends last may still hold it.
ConnectionLocks::Lock& lock_of(const std::string& endpoint) {
    static auto& mutex = *new std::mutex;
    static auto& locks = *new std::map<std::string, ConnectionLocks::Lock>;
    const std::lock_guard guard(mutex);
    return locks[endpoint];
}

void restart_system_calls() {
#ifndef _WIN32
    for (const int number : {SIGINT, SIGTERM}) {
        struct sigaction action;
        if (sigaction(number, nullptr, &action) || (action.sa_flags & SA_RESTART)) continue;
        action.sa_flags |= SA_RESTART;
        sigaction(number, &action, nullptr);
    }
#endif
}

}  // namespace

ConnectionLocks::ConnectionLocks(std::span<const ggml_backend_dev_t> devices) {
    std::vector<std::string> endpoints;
    for (ggml_backend_dev_t device : devices) {
        if (std::string endpoint = endpoint_of(device); !endpoint.empty()) endpoints.push_back(std::move(endpoint));
    }
    add(std::move(endpoints));
}

ConnectionLocks::ConnectionLocks(const std::string& endpoint) { add({endpoint}); }

void ConnectionLocks::add(std::vector<std::string> endpoints) {
    std::ranges::sort(endpoints);
    endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
    for (const std::string& endpoint : endpoints) locks_.push_back(&lock_of(endpoint));
    if (!locks_.empty()) restart_system_calls();
}

ConnectionLocks::Held ConnectionLocks::hold() const {
    Held held;
    for (Lock* lock : locks_) held.emplace_back(*lock);
    return held;
}

ConnectionLocks::Held ConnectionLocks::hold(const std::function<void()>& stop) const {
    Held held;
    for (Lock* lock : locks_) {
        held.emplace_back(*lock, std::defer_lock);
        while (!held.back().try_lock_for(kPoll)) stop();
    }
    return held;
}

}  // namespace ds4::backend
