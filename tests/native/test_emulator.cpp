// The emulator runs correct kernels, and names what is wrong with others: in gpu kernels here, in Metal's in
// test_emulator_metal.cpp.
#define DS4_EMULATED

#include <atomic>
#include <thread>

#include "emulated_kernel.h"
#include "gpu/simt.h"

namespace simt = ds4::kernels::simt;
using simt::Global;
using test::EmulatedKernel;
using test::says;

namespace {

constexpr int kThreads = EmulatedKernel::kThreads;

/// Sums of rows of kThreads numbers, one block a row.
struct SumArguments {
    Global<const float> x;
    Global<float> sums;
};

template <int kWave>
DS4_KERNEL(kThreads)
void row_sums(SumArguments a) {
    DS4_SHARED(float, parts, kThreads / kWave);
    const float sum = simt::wave_sum<kWave>(a.x[simt::block() * kThreads + simt::thread()]);
    if (simt::lane<kWave>() == 0) parts[simt::wave<kWave>()] = sum;
    simt::barrier();
    if (simt::thread() > 0) return;
    float total = 0;
    for (int i = 0; i < kThreads / kWave; i++) total += parts[i];
    a.sums[simt::block()] = total;
}

std::string fault(const std::function<void()>& thread) { return EmulatedKernel().fault(thread); }

}  // namespace

CASE(the_emulator_runs_blocks_waves_and_barriers) {
    for (int wave : {32, 64}) {
        EmulatedKernel k;
        for (size_t i = 0; i < k.in.size(); i++) k.in[i] = static_cast<float>(i);
        const SumArguments a{k.in.data(), k.out.data()};
        k.run(wave, [&] { wave == 32 ? row_sums<32>(a) : row_sums<64>(a); });
        k.memory.require_written();
        CHECK_CLOSE(k.out, (std::vector<float>{8128, 8128 + 128 * 128, 8128 + 2 * 128 * 128}), 0);
    }
}

CASE(the_emulator_runs_in_several_threads_at_once) {
    std::atomic<int> failed = 0;
    const auto repeat = [&] {
        for (int i = 0; i < 300; i++) {
            EmulatedKernel k;
            const SumArguments a{k.in.data(), k.out.data()};
            const auto thread = [&] { row_sums<32>(a); };
            if (k.fault(thread) != "no fault" || k.out[2] != kThreads / 2) failed++;
        }
    };
    {
        const std::jthread one(repeat), other(repeat);
    }
    CHECK(failed == 0);
}

CASE(the_emulator_shuffles) {
    EmulatedKernel k;
    k.run(32, [&] {
        const int lane = simt::lane<32>();
        const int left = simt::shuffle<32>(lane, (lane + 31) % 32), twin = simt::shuffle_xor<32>(lane, 5);
        const float last = simt::wave_max<32>(static_cast<float>(lane));
        if (left != (lane + 31) % 32 || twin != (lane ^ 5) || last != 31) ds4::emulator::fault("got another lane's");
    });
}

CASE(the_emulator_catches_a_barrier_that_not_all_reach) {
    const std::string ended = fault([] {
        if (simt::thread() != 7) simt::barrier();
    });
    CHECK(says(ended, "kernel, block 0, thread 0: waits at test_emulator.cpp:"));
    CHECK(says(ended, "for ever: thread 7 has ended, they diverged"));
}

CASE(the_emulator_catches_threads_at_different_barriers) {
    const std::string apart = fault([] {
        if (simt::thread() < 40) {
            simt::barrier();
        } else {
            simt::barrier();
        }
    });
    CHECK(says(apart, "kernel, block 0, thread 40: is at the barrier of test_emulator.cpp:"));
    CHECK(says(apart, "they diverged"));
}

CASE(the_emulator_catches_a_wave_of_which_not_all_take_part) {
    const std::string ended = fault([] {
        if (simt::thread() != 33) simt::wave_sum<32>(1);
    });
    CHECK(says(ended, "thread 32: waits at test_emulator.cpp:"));
    CHECK(says(ended, "thread 33 has ended"));
    const std::string apart = fault([] {
        if (simt::thread() % 2) {
            simt::wave_sum<32>(1);
        } else {
            simt::wave_max<32>(1);
        }
    });
    CHECK(says(apart, "thread 1: is at the operation of the wave of test_emulator.cpp:"));
    const std::string barrier = fault([] {
        if (simt::thread() == 5) simt::barrier();
        simt::wave_sum<32>(1);
        if (simt::thread() != 5) simt::barrier();
    });
    CHECK(says(barrier, "they diverged"));
}

CASE(the_emulator_catches_shared_accesses_out_of_bounds) {
    const std::string past = fault([] {
        DS4_SHARED(float, tile, 64);
        if (simt::thread() == 64) tile[simt::thread()] = 1;
    });
    CHECK(says(past, "kernel, block 0, thread 64: writes tile[64] (elements of 4 bytes), but there are 64"));
    const std::string before = fault([] {
        DS4_SHARED(float, tile, 64);
        const simt::Shared<float> half = tile + 32;
        half[-33] = 1;
    });
    CHECK(says(before, "thread 0: writes tile[-1]"));
    const std::string large = fault([] {
        DS4_SHARED(float, tile, 12289);
        tile[0] = 1;
    });
    CHECK(says(large, "49156 bytes of shared memory; a block has 49152"));
}

CASE(the_emulator_catches_global_accesses_out_of_bounds) {
    EmulatedKernel k;
    const Global<const float> in = k.in.data();
    const Global<float> out = k.out.data();
    CHECK(says(k.fault([&] { out[simt::thread()] = 1; }),
               "thread 3: writes out[3] (elements of 4 bytes), but there are"));
    CHECK(says(k.fault([&] { out[0] = in[-1]; }), "reads in[-1]"));
    CHECK(says(k.fault([&] { simt::load4(in + 380, 4); }), "reads in[384]"));
    CHECK(says(k.fault([&] { simt::load4(in, 2); }), "are not aligned"));
}

CASE(the_emulator_catches_pointers_to_nothing) {
    EmulatedKernel k;
    float other = 0;
    const Global<float> nothing = nullptr, elsewhere = &other, in = k.in.data();
    CHECK(says(k.fault([&] { nothing[0] = 1; }), "uses a null pointer"));
    CHECK(says(k.fault([&] { elsewhere[0] = 1; }), "in none of the kernel's buffers"));
    CHECK(says(k.fault([&] { in[2] = 1; }), "writes in[2] (elements of 4 bytes), which is an input"));
}

CASE(the_emulator_catches_reads_of_what_nothing_wrote) {
    EmulatedKernel k;
    const Global<float> out = k.out.data();
    CHECK(says(k.fault([&] { out[1] += 1; }), "thread 0: reads out[1] (elements of 4 bytes), which nothing wrote"));
    const auto neighbour = [](bool waits) {
        return [=] {
            DS4_SHARED(float, tile, kThreads);
            tile[simt::thread()] = 1;
            if (waits) simt::barrier();
            const float next = tile[(simt::thread() + 1) % kThreads];
            if (next != 1) ds4::emulator::fault("read another value");
        };
    };
    CHECK(says(k.fault(neighbour(false)), "thread 0: reads tile[1] (elements of 4 bytes), which nothing wrote"));
    CHECK(k.fault(neighbour(true)) == "no fault");
}

CASE(the_emulator_catches_races_of_a_block) {
    const std::string read = fault([] {
        DS4_SHARED(float, tile, kThreads);
        tile[simt::thread()] = 1;
        simt::barrier();
        const float next = tile[(simt::thread() + 1) % kThreads];
        tile[simt::thread()] = next;
    });
    CHECK(
        says(read, "thread 0: writes tile[0] (elements of 4 bytes), which thread 127 of block 0 read since the last"));
    const std::string written = fault([] {
        DS4_SHARED(float, tile, 1);
        tile[0] = 1;
    });
    CHECK(says(written, "thread 1: writes tile[0] (elements of 4 bytes), which thread 0 of block 0 wrote since"));
    const std::string seen = fault([] {
        DS4_SHARED(float, tile, 1);
        if (simt::thread() == 0) tile[0] = 1;
        const float x = tile[0];
        if (x != 1) ds4::emulator::fault("read another value");
    });
    CHECK(says(seen, "thread 1: reads tile[0] (elements of 4 bytes), which thread 0 of block 0 wrote since"));
}

CASE(the_emulator_catches_races_of_blocks) {
    EmulatedKernel k;
    const Global<float> out = k.out.data();
    const std::string found = k.fault([&] {
        if (simt::thread() == 0) out[0] = 1;
    });
    CHECK(says(found, "block 1, thread 0: writes out[0]"));
    CHECK(says(found, "which thread 0 of block 0 wrote in the same launch: blocks run in any order"));
    for (int launch = 0; launch < 2; launch++) {  // the second may do as it likes with what the first has written
        const std::string apart = k.fault([&] {
            if (simt::thread() == 0) out[(simt::block() + launch) % 3] = 1;
        });
        CHECK(apart == "no fault");
    }
}

CASE(additions_that_others_cannot_come_between_are_no_race) {
    EmulatedKernel k;
    const Global<float> out = k.out.data();
    k.run(32, [&] {
        if (simt::block() == 0 && simt::thread() == 0) out[0] = 0;
    });
    k.run(32, [&] { simt::atomic_add(out, 0, 1.0f); });
    CHECK_CLOSE(k.out[0], 3.0f * kThreads, 0);
}

CASE(shared_memory_of_a_block_is_not_the_next_one_s) {
    EmulatedKernel k;
    const std::string found = k.fault([] {
        DS4_SHARED(float, tile, kThreads);
        if (simt::block() == 0) tile[simt::thread()] = 1;
        const float x = tile[simt::thread()];
        if (x != 1) ds4::emulator::fault("read another value");
    });
    CHECK(says(found, "block 1, thread 0: reads tile[0]"));
}

CASE(the_emulator_catches_outputs_that_were_not_written) {
    EmulatedKernel k;
    const Global<float> out = k.out.data();
    k.run(32, [&] {
        if (simt::block() == 0 && simt::thread() < 2) out[simt::thread()] = 1;
    });
    REQUIRE_THROWS(ds4::emulator::Fault, k.memory.require_written());
}

CASE(the_emulator_wants_whole_waves) {
    EmulatedKernel k;
    REQUIRE_THROWS(ds4::emulator::Fault, ds4::emulator::run({"kernel", 1, 48, 32}, k.memory, [] {}));
    CHECK(says(fault([] { simt::wave_sum<64>(1); }), "is compiled for other waves"));
    CHECK(says(fault([] { simt::shuffle<32>(1, 32); }), "asks lane 32 of a wave of 32"));
}
