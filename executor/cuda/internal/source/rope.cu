#include "rotation.h"

// rope turns q and k in place, rope_backward their gradients back: the same
// with other signs of sines (back). A block has a row of both; a thread eight
// pairs of a head at a time.
template <class T, bool WIDE>
__device__ void turnHeads(Matrix<T> x, i64 row, i64 heads, i64 dim, i64 half, bool back, const float *cosines, const float *sines) {
    int each = (int)((half + 7) / 8);
    for (int item = threadIdx.x; item < heads * each; item += blockDim.x) {
        i64 at = item % each * 8, left = half - at;
        T *head = x.at(row, item / each * dim + at);
        Eight first = load<WIDE>(head, left), second = load<WIDE>(head + half, left);
        EIGHT if (i < left) turned<T>(first.at[i], second.at[i], cosines[at + i], back ? -sines[at + i] : sines[at + i]);
        store<WIDE>(head, left, first);
        store<WIDE>(head + half, left, second);
    }
}

template <class T>
__device__ void rope(Matrix<T> q, Matrix<T> k, const Frequencies &turn, i64 heads, i64 kv, i64 dim, i64 seq, i64 past, bool back) {
    __shared__ float cosines[128], sines[128];
    i64 row = blockIdx.x;
    angles<T>(turn, position(row, seq, past), cosines, sines);
    __syncthreads();
    if (q.wide() && k.wide() && dim % 8 == 0 && turn.half % 8 == 0) {
        turnHeads<T, true>(q, row, heads, dim, turn.half, back, cosines, sines);
        turnHeads<T, true>(k, row, kv, dim, turn.half, back, cosines, sines);
    } else {
        turnHeads<T, false>(q, row, heads, dim, turn.half, back, cosines, sines);
        turnHeads<T, false>(k, row, kv, dim, turn.half, back, cosines, sines);
    }
}

#define KERNEL(NAME, T, BACK)                                                                                                 \
    extern "C" __global__ void NAME(Matrix<T> q, Matrix<T> k, i64 heads, i64 kv, i64 dim, i64 seq, i64 past,                  \
                                    const __grid_constant__ Frequencies turn) {                                              \
        rope<T>(q, k, turn, heads, kv, dim, seq, past, BACK);                                                                 \
    }
KERNEL(rope_bf16, bf16, false)
KERNEL(rope_f32, float, false)
KERNEL(rope_backward_bf16, bf16, true)
KERNEL(rope_backward_f32, float, true)
