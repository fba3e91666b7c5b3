// How x comes into shared memory: normed, where it has a norm.
#pragma once
#include "fused.h"

// stretch is the distance of x's rows in shared memory, in bytes.
__device__ inline int stretch(i64 inner) { return (int)((inner * 2 + 127) / 128 * 128 + 64); }

__device__ inline float squares(uint4 four) {
    Several<8> values = unpacked(four);
    float sum = 0;
    _Pragma("unroll") for (int i = 0; i < 8; i++) sum = fmaf(values.at[i], values.at[i], sum);
    return sum;
}

__device__ inline uint4 normed(uint4 four, uint4 by, float inverse, bool gemma) {
    Several<8> values = unpacked(four), factor = unpacked(by);
    _Pragma("unroll") for (int i = 0; i < 8; i++) {
        float made = values.at[i] * inverse;
        values.at[i] = gemma ? made * (1 + factor.at[i]) : rounded<bf16>(made) * factor.at[i];
    }
    return packed(values);
}

// stage is for the warps that multiply. ready is called before x is read.
template <class Ready> __device__ void stage(const Op &op, char *xs, float *room, Ready ready) {
    const int AHEAD = 4; // reads of x at a time
    int apart = stretch(op.inner), each = (int)(op.inner / 8), lane = threadIdx.x % 32, warp = threadIdx.x / 32, rows = (int)op.rows;
    auto get = [&](int row, int at) { return fresh(op.x + row * op.xStride + at * 8); };
    auto put = [&](int row, int at, uint4 four) { *(uint4 *)(xs + row * apart + at * 16) = four; };
    const uint4 *weight = (const uint4 *)op.norm;
    if (!op.norm) {
        ready();
        for (int row = 0; row < rows; row++)
            for (int base = threadIdx.x; base < each; base += AHEAD * WORKERS) {
                uint4 four[AHEAD];
                _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (base + i * WORKERS < each) four[i] = get(row, base + i * WORKERS);
                _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (base + i * WORKERS < each) put(row, base + i * WORKERS, four[i]);
            }
    } else if (rows == 1) {
        uint4 by[AHEAD], four[AHEAD];
        _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (threadIdx.x + i * WORKERS < each) by[i] = weight[threadIdx.x + i * WORKERS];
        ready();
        float sum = 0;
        _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (threadIdx.x + i * WORKERS < each) four[i] = get(0, threadIdx.x + i * WORKERS);
        _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (threadIdx.x + i * WORKERS < each) sum += squares(four[i]);
        for (int at = threadIdx.x + AHEAD * WORKERS; at < each; at += WORKERS) sum += squares(get(0, at));
        sum = warpSum(sum);
        if (lane == 0) room[warp] = sum;
        workersMeet();
        sum = 0;
        _Pragma("unroll") for (int i = 0; i < MULTIPLY; i++) sum += room[i];
        float inverse = inverseRoot<bf16>(sum / (float)op.inner + (float)op.epsilon);
        _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (threadIdx.x + i * WORKERS < each) put(0, threadIdx.x + i * WORKERS, normed(four[i], by[i], inverse, op.gemma));
        for (int at = threadIdx.x + AHEAD * WORKERS; at < each; at += WORKERS) put(0, at, normed(get(0, at), weight[at], inverse, op.gemma));
    } else {
        ready();
        for (int row = warp; row < rows; row += MULTIPLY) {
            float sum = 0;
            for (int base = lane; base < each; base += AHEAD * 32) {
                uint4 four[AHEAD];
                _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (base + i * 32 < each) four[i] = get(row, base + i * 32);
                _Pragma("unroll") for (int i = 0; i < AHEAD; i++) if (base + i * 32 < each) sum += squares(four[i]), put(row, base + i * 32, four[i]);
            }
            float inverse = inverseRoot<bf16>(warpSum(sum) / (float)op.inner + (float)op.epsilon);
            for (int at = lane; at < each; at += 32) put(row, at, normed(*(const uint4 *)(xs + row * apart + at * 16), weight[at], inverse, op.gemma));
        }
    }
    workersMeet();
}
