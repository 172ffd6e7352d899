#include "backend/rpc_connection.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>

#include "backend/rpc_device.h"
#include "ds4/errors.h"

namespace ds4::backend {
namespace {

constexpr std::chrono::milliseconds kPoll{20};

/// One mutex for each endpoint that was ever locked. It is never destroyed: a model may outlive static objects.
std::recursive_timed_mutex& mutex_of(const std::string& endpoint) {
    static std::mutex mutex;
    static auto& all = *new std::map<std::string, std::recursive_timed_mutex>();
    const std::lock_guard lock(mutex);
    return all[endpoint];
}

StopWaiting& stop_waiting() {
    static auto& stop = *new StopWaiting();
    return stop;
}

/// Has system calls go on after a signal that this process handles.
void restart_system_calls() {
#ifndef _WIN32
    for (const int number : {SIGINT, SIGTERM}) {
        struct sigaction action;
        if (sigaction(number, nullptr, &action) != 0 || action.sa_flags & SA_RESTART) continue;
        action.sa_flags |= SA_RESTART;
        sigaction(number, &action, nullptr);
    }
#endif
}

}  // namespace

void set_stop_waiting(StopWaiting stop) { stop_waiting() = std::move(stop); }

ConnectionLock::ConnectionLock(const std::vector<std::string>& endpoints, const StopWaiting& stop) {
    if (endpoints.empty()) return;
    const StopWaiting& asked = stop ? stop : stop_waiting();
    for (const std::string& endpoint : endpoints) {
        std::unique_lock lock(mutex_of(endpoint), std::defer_lock);
        while (!lock.try_lock_for(kPoll)) {
            if (asked && asked()) throw Cancelled();
        }
        held_.push_back(std::move(lock));
    }
    restart_system_calls();
}

ConnectionLock ConnectionLock::for_destructor(const std::vector<std::string>& endpoints) {
    ConnectionLock all;
    for (const std::string& endpoint : endpoints) all.held_.emplace_back(mutex_of(endpoint));
    if (!endpoints.empty()) restart_system_calls();
    return all;
}

std::vector<std::string> endpoints_of(std::span<const ggml_backend_dev_t> devices) {
    std::vector<std::string> endpoints;
    for (ggml_backend_dev_t device : devices) {
        if (std::string endpoint = endpoint_of(device); !endpoint.empty()) endpoints.push_back(std::move(endpoint));
    }
    std::ranges::sort(endpoints);
    endpoints.erase(std::ranges::unique(endpoints).begin(), endpoints.end());
    return endpoints;
}

Connections::Connections(std::span<const ggml_backend_dev_t> devices) : endpoints_(backend::endpoints_of(devices)) {
    const ConnectionLock lock(endpoints_);
    std::vector<std::shared_ptr<void>> open;  // closed under the lock when a server fails
    for (ggml_backend_dev_t device : devices) {
        if (auto connection = keep_connected(device)) open.push_back(std::move(connection));
    }
    open_ = std::move(open);
}

}  // namespace ds4::backend
