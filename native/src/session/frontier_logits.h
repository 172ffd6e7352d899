#pragma once
// The logits of what follows the last token of a session.

#include <span>
#include <utility>
#include <vector>

namespace ds4::session {

/// Where the logits of the frontier are: on the host, in a row that the device keeps (DeviceKernels::frontier_row), or
/// unknown. A value, so that what a change may break can be put back.
class FrontierLogits {
   public:
    /// Another frontier, whose logits nobody has computed.
    void clear() { place_ = Place::unknown, host_.clear(); }
    void set(std::span<const float> row) { place_ = Place::host, host_.assign(row.begin(), row.end()); }
    void set(std::vector<float>&& row) { place_ = Place::host, host_ = std::move(row); }
    void set_on_device() { place_ = Place::device, host_.clear(); }

    bool on_host() const { return place_ == Place::host; }
    bool on_device() const { return place_ == Place::device; }
    /// [vocab]; empty where they are not on the host.
    const std::vector<float>& host() const { return host_; }

   private:
    enum class Place { unknown, host, device };

    Place place_ = Place::unknown;
    std::vector<float> host_;
};

}  // namespace ds4::session
