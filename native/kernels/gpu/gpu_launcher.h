#pragma once
// The launcher of CUDA and HIP: host code for both compilers. It uses the names that the runtime.h of each defines,
// which has to be included before.

#include <string>
#include <vector>

#include "ds4/errors.h"
#include "gpu/acceptance.cuh"
#include "gpu/draft_attention.cuh"
#include "gpu/markov.cuh"

namespace ds4::kernels::DS4_PLATFORM {

/// Throws BackendError unless the status of a runtime call is success; `what` names the call.
inline void check(runtime::Status status, const char* what) {
    if (status == runtime::kSuccess) return;
    throw BackendError(std::string(what) + " on " + runtime::kName + ": " + runtime::message(status) +
                       "; set DS4_OPS=generic to do without ds4py's own kernels");
}

/// Selects a device for the calling thread while it exists; ggml selects devices, too.
class Chosen {
   public:
    explicit Chosen(int device) {
        check(runtime::get_device(&before_), "asking for the device");
        check(runtime::set_device(device), "choosing the device");
    }
    ~Chosen() { (void)runtime::set_device(before_); }
    Chosen(const Chosen&) = delete;

   private:
    int before_ = 0;
};

/// A stream, with memory for the intermediate results of kernels.
class Stream {
   public:
    explicit Stream(int device) : device_(device) {
        const Chosen chosen(device_);
        check(runtime::create_stream(&stream_), "making a stream");
    }
    ~Stream() {
        (void)runtime::set_device(device_);
        for (const Piece& piece : scratch_) (void)runtime::free_memory(piece.data);
        (void)runtime::destroy_stream(stream_);
    }
    Stream(const Stream&) = delete;

    int device() const { return device_; }
    /// Begins a piece of work. It uses the scratch memory of the previous one, since kernels run in order.
    void begin() { used_ = 0; }

    template <typename Arguments>
    void launch(const char* name, void (*kernel)(Arguments), int blocks, int threads, const Arguments& arguments) {
        kernel<<<blocks, threads, 0, stream_>>>(arguments);
        check(runtime::last_error(), name);
    }

    template <typename T>
    T* scratch(const char* name, size_t count) {
        if (used_ == scratch_.size()) scratch_.emplace_back();
        Piece& piece = scratch_[used_++];
        if (piece.bytes < count * sizeof(T)) grow(piece, name, count * sizeof(T));
        return static_cast<T*>(piece.data);
    }

    void synchronize() {
        const Chosen chosen(device_);
        check(runtime::synchronize(stream_), "waiting for kernels");
    }

   private:
    struct Piece {
        void* data = nullptr;
        size_t bytes = 0;
    };

    void grow(Piece& piece, const char* name, size_t bytes) {
        check(runtime::synchronize(stream_), "waiting for kernels");
        check(runtime::free_memory(piece.data), name);
        piece = {};
        check(runtime::allocate(&piece.data, bytes), name);
        piece.bytes = bytes;
    }

    int device_;
    runtime::Stream stream_{};
    std::vector<Piece> scratch_;
    size_t used_ = 0;
};

template <int kWave>
class GpuLauncher final : public Launcher {
   public:
    explicit GpuLauncher(int device) : stream_(device) {}

    void run(const DraftAttention& work) override { enqueue(work); }
    void run(const MarkovHead& work) override { enqueue(work); }
    void run(const DeviceAcceptance& work) override { enqueue(work); }
    void synchronize() override { stream_.synchronize(); }

   private:
    template <typename Work>
    void enqueue(const Work& work) {
        const Chosen chosen(stream_.device());
        stream_.begin();
        launch<kWave>(stream_, work);
    }

    Stream stream_;
};

}  // namespace ds4::kernels::DS4_PLATFORM
