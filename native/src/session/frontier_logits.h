#pragma once
// The logits of a session's frontier, wherever they are.

#include <span>
#include <utility>
#include <vector>

namespace ds4::session {

/// Logits [vocab] of what follows the last committed token. They are in host memory, in the row that a device keeps
/// (DeviceKernels::kept_row), or not known; whatever moves the frontier sets them or forgets them.
class FrontierLogits {
   public:
    bool on_host() const { return !row_.empty(); }
    bool on_device() const { return on_device_; }
    /// The logits in host memory; empty when they are not there.
    const std::vector<float>& row() const { return row_; }

    void set(std::vector<float> row) {
        row_ = std::move(row);
        on_device_ = false;
    }
    /// The device now keeps them.
    void keep_on_device() {
        row_.clear();
        on_device_ = true;
    }
    /// They were read from the device, which keeps them too.
    void read(std::vector<float> row) { row_ = std::move(row); }
    void forget() { *this = {}; }

   private:
    std::vector<float> row_;
    bool on_device_ = false;
};

}  // namespace ds4::session
