#pragma once
// The logits at a session's frontier, in host memory or on the device.

#include <span>
#include <utility>
#include <vector>

namespace ds4::session {

/// The logits [vocab] for the token after the last committed one. They are in host memory, in the row that a device
/// keeps (DeviceKernels::kept_row), or unknown. Every call that moves the frontier sets or forgets them.
class FrontierLogits {
   public:
    bool on_host() const { return !row_.empty(); }
    bool on_device() const { return on_device_; }
    /// The logits in host memory; empty if they are elsewhere or unknown.
    const std::vector<float>& row() const { return row_; }

    void set(std::vector<float> row) {
        row_ = std::move(row);
        on_device_ = false;
    }
    /// Records that the device keeps the logits.
    void keep_on_device() {
        row_.clear();
        on_device_ = true;
    }
    /// Adds a copy that was read from the device, which still keeps its own.
    void read(std::vector<float> row) { row_ = std::move(row); }
    void forget() { *this = {}; }

   private:
    std::vector<float> row_;
    bool on_device_ = false;
};

}  // namespace ds4::session
