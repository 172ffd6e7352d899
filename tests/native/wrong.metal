// Kernels that are wrong, each in one way, for the emulator to find.

#include <metal_stdlib>

#include "metal/address_spaces.h"

using namespace metal;

kernel void reads_past_the_end(DS4_GLOBAL(const float) in [[buffer(0)]], DS4_GLOBAL(float) out [[buffer(1)]],
                               uint index [[thread_index_in_threadgroup]]) {
    if (index == 9) out[0] = in[384];
}

kernel void writes_past_the_end_of_shared(uint index [[thread_index_in_threadgroup]]) {
    DS4_SHARED(float, tile, 100);
    tile[index] = 1;
}

kernel void reads_what_nothing_wrote(DS4_GLOBAL(float) out [[buffer(1)]], uint index [[thread_index_in_threadgroup]]) {
    DS4_SHARED(float, tile, 128);
    tile[index] = 1;
    if (index == 0) out[0] = tile[1];  // a barrier is missing
}

kernel void leaves_before_the_barrier(uint index [[thread_index_in_threadgroup]]) {
    if (index == 127) return;
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void parts_a_simdgroup(DS4_GLOBAL(float) out [[buffer(1)]], uint index [[thread_index_in_threadgroup]]) {
    float sum = 0;
    if (index % 2) {
        sum = simd_sum(1.0f);
    } else {
        sum = simd_max(1.0f);
    }
    if (index == 0) out[0] = sum;
}

kernel void takes_too_much_memory(uint index [[thread_index_in_threadgroup]]) {
    DS4_SHARED(float, tile, 8193);
    tile[index] = 1;
}

kernel void is_right(DS4_GLOBAL(const float) in [[buffer(0)]], DS4_GLOBAL(float) out [[buffer(1)]],
                     uint index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                     uint group [[threadgroup_position_in_grid]]) {
    DS4_SHARED(float, parts, 4);
    const float sum = simd_sum(in[group * 128 + index]);
    if (lane == 0) parts[index / 32] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (index == 0) out[group] = parts[0] + parts[1] + parts[2] + parts[3];
}
