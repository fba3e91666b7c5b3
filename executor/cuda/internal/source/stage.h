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
        values.at[i] *= inverse;
        if (gemma) values.at[i] *= 1 + factor.at[i];
    }
    uint4 made = packed(values);
    if (gemma) return made;
    return make_uint4(productBoth(made.x, by.x), productBoth(made.y, by.y), productBoth(made.z, by.z), productBoth(made.w, by.w));
}

// stage is for the warps that multiply. ready is called before x is read. It takes the
// stretch of one more row than there are, for the norm's weights.
template <class Ready> __device__ void stage(const Op &op, char *xs, float *room, Ready ready) {
    int apart = stretch(op.inner), each = (int)(op.inner / 8), lane = threadIdx.x % 32, warp = threadIdx.x / 32, rows = (int)op.rows;
    auto place = [&](int row, int at) { return (uint4 *)(xs + row * apart + at * 16); };
    const uint4 *weight = (const uint4 *)op.norm;
    // A row is of one warp, or if there is only one, of all. The norm's weights wait
    // behind the rows.
    bool alone = rows == 1, gemma = op.gemma;
    int first = alone ? threadIdx.x : lane, by = alone ? WORKERS : 32, begin = alone ? 0 : warp;
    if (op.norm) for (int at = threadIdx.x; at < each; at += WORKERS) *place(rows, at) = weight[at];
    ready();
    _Pragma("unroll 1") for (int row = begin; row < rows; row += MULTIPLY) {
        const bf16 *x = op.x + row * op.xStride;
        _Pragma("unroll 4") for (int at = first; at < each; at += by) copyLater(place(row, at), x + at * 8);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    _Pragma("unroll 1") for (int row = begin; row < rows && op.norm; row += MULTIPLY) { // a thread reads what it has copied
        if (row + MULTIPLY < rows) asm volatile("cp.async.wait_group 1;" ::: "memory"); // a warp has two rows at most
        else asm volatile("cp.async.wait_group 0;" ::: "memory");
        float sum = 0;
        _Pragma("unroll 4") for (int at = first; at < each; at += by) sum += squares(*place(row, at));
        sum = warpSum(sum);
        if (alone) {
            if (lane == 0) room[warp] = sum;
            workersMeet();
            sum = 0;
            _Pragma("unroll") for (int i = 0; i < MULTIPLY; i++) sum += room[i];
        }
        float inverse = inverseRoot<bf16>(sum / (float)op.inner + (float)op.epsilon);
        _Pragma("unroll 4") for (int at = first; at < each; at += by) *place(row, at) = normed(*place(row, at), *place(rows, at), inverse, gemma);
    }
    asm volatile("cp.async.wait_all; fence.proxy.async.shared::cta;" ::: "memory"); // the next x here may come by copies
    workersMeet();
}
