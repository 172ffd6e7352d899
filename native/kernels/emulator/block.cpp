#include "emulator/block.h"

#include <algorithm>
#include <cstring>

namespace ds4::emulator {
namespace {

/// The block that this thread runs: sessions in several threads may have kernels run at once.
thread_local Block* running = nullptr;

/// The last part of a path, and the line.
std::string text(const Place& place) {
    const std::string file = place.file_name();
    return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(place.line());
}

bool same(const Place& a, const Place& b) {
    return a.line() == b.line() && a.column() == b.column() && !std::strcmp(a.file_name(), b.file_name());
}

/// Makes a block the running one while it lives.
class Running {
   public:
    explicit Running(Block& block) { running = &block; }
    ~Running() { running = nullptr; }
};

}  // namespace

Block& current() {
    if (!running) throw std::logic_error("only a kernel that the emulator runs may do this");
    return *running;
}

void fault(const std::string& what) { throw Fault((running ? running->where() : "outside of a kernel") + " " + what); }

Block::Block(const Launch& launch, Memory& memory, int index, uint32_t number)
    : launch_(launch),
      memory_(memory),
      index_(index),
      number_(number),
      states_(launch.threads, State::ready),
      all_{"barrier", 0, launch.threads},
      waits_for_(launch.threads),
      values_(2 * launch.threads) {
    for (int first = 0; first < launch.threads; first += launch.wave) {
        waves_.push_back({"operation of the wave", first, launch.wave});
    }
}

std::string Block::where() const {
    return std::string(launch_.kernel) + ", block " + std::to_string(index_) + ", thread " + std::to_string(thread_) +
           ":";
}

void Block::meet(Meeting& meeting, const Place& place) {
    if (meeting.arrived && !same(meeting.place, place)) {
        fault("is at the " + std::string(meeting.what) + " of " + text(place) + " while others wait at that of " +
              text(meeting.place) + ": they diverged");
    }
    meeting.place = place;
    if (++meeting.arrived == meeting.size) {
        meeting.arrived = 0;
        meeting.held++;
        for (int i = 0; i < meeting.size; i++) states_[meeting.first + i] = State::ready;
        return;
    }
    const int self = thread_;
    states_[self] = State::waits;
    waits_for_[self] = &meeting;
    fibers_[self]->pause();
}

void Block::barrier(const Place& place) { meet(all_, place); }

const uint64_t* Block::exchange(uint64_t value, const Place& place) {
    Meeting& wave = waves_[thread_ / launch_.wave];
    // A lane that is fast may bring its next value while others have not read the last ones.
    uint64_t* values = &values_[(wave.held % 2) * launch_.threads];
    values[thread_] = value;
    meet(wave, place);
    return values + wave.first;
}

Region& Block::shared(const char* name, size_t bytes, const Place& place) {
    for (const auto& a : arrays_) {
        if (same(a->place, place) && a->region.name() == name && a->region.bytes() == bytes) return a->region;
    }
    shared_bytes_ += bytes;
    if (shared_bytes_ > launch_.shared_bytes) {
        fault("declares " + std::string(name) + ", and with it " + std::to_string(shared_bytes_) +
              " bytes of shared memory; a block has " + std::to_string(launch_.shared_bytes));
    }
    std::unique_ptr<std::byte[]> data(new std::byte[bytes]);
    std::byte* base = data.get();
    arrays_.push_back(
        std::make_unique<Array>(Array{place, std::move(data), Region(name, base, bytes, Region::Kind::scratch)}));
    return arrays_.back()->region;
}

void Block::step(int thread) {
    thread_ = thread;
    fibers_[thread]->resume();
    if (fibers_[thread]->done()) states_[thread] = State::done;
}

void Block::stuck() {
    thread_ = static_cast<int>(std::ranges::find(states_, State::waits) - states_.begin());
    const Meeting& meeting = *waits_for_[thread_];
    int other = meeting.first;
    while (states_[other] == State::waits && waits_for_[other] == &meeting) other++;
    const bool ended = states_[other] == State::done;
    fault("waits at " + text(meeting.place) + " for ever: thread " + std::to_string(other) +
          (ended ? " has ended" : " waits at " + text(waits_for_[other]->place)) + ", they diverged");
}

void Block::run(std::vector<std::unique_ptr<Fiber>>& fibers, const std::function<void()>& thread) {
    const Running now(*this);
    for (int i = 0; i < launch_.threads; i++) {
        fibers[i]->start(&thread);
        fibers_.push_back(fibers[i].get());
    }
    for (;;) {
        bool moved = false;
        for (int i = 0; i < launch_.threads; i++) {
            if (states_[i] != State::ready) continue;
            step(i);
            moved = true;
        }
        if (moved) continue;
        if (std::ranges::all_of(states_, [](State s) { return s == State::done; })) return;
        stuck();
    }
}

void run(const Launch& launch, Memory& memory, const std::function<void()>& thread) {
    if (launch.wave < 1 || launch.wave > kWidestWave || launch.threads % launch.wave || launch.threads > 1024) {
        throw Fault(std::string(launch.kernel) + ": blocks of " + std::to_string(launch.threads) +
                    " threads in waves of " + std::to_string(launch.wave) +
                    "; a block is whole waves, of 64 lanes or less, and has at most 1024 threads");
    }
    static thread_local std::vector<std::unique_ptr<Fiber>> fibers;  // stacks, used again
    while (fibers.size() < static_cast<size_t>(launch.threads)) fibers.push_back(std::make_unique<Fiber>());
    static thread_local uint32_t number = 0;
    number++;
    for (int i = 0; i < launch.blocks; i++) Block(launch, memory, i, number).run(fibers, thread);
}

}  // namespace ds4::emulator
