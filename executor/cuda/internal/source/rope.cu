#include "rotation.h"

// rope turns q and k in place, rope_backward their gradients back: the same
// with other signs of sines (back). A block has a row of both, whose first pairs
// are on their way while it works the angles out; a thread has N pairs of a head
// at a time.
template <class T, int N>
__device__ void rope(Matrix<T> q, Matrix<T> k, const Frequencies &turn, i64 heads, i64 kv, i64 dim, i64 seq, i64 past, bool back) {
    __shared__ float cosines[128], sines[128];
    i64 row = blockIdx.x, half = turn.half;
    int each = max((int)half / N, 1), items = half > 0 ? (int)(heads + kv) * each : 0, item = threadIdx.x;
    Held<T, N> first = {}, second = {};
    T *at = nullptr;
    auto fetch = [&]() {
        if (item >= items) return;
        int head = item / each;
        at = (head < heads ? q.at(row, head * dim) : k.at(row, (head - heads) * dim)) + item % each * N;
        first.read(at), second.read(at + half);
    };
    fetch();
    angles<T>(turn, position(row, seq, past), cosines, sines);
    __syncthreads();
    for (; item < items; item += 256, fetch()) {
        Several<N> one = first.get(), two = second.get();
        int angle = item % each * N;
        EACH turned<T>(one.at[i], two.at[i], cosines[angle + i], back ? -sines[angle + i] : sines[angle + i]);
        store<N>(at, one);
        store<N>(at + half, two);
    }
}

#define KERNEL(NAME, T, BACK)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256) NAME(Matrix<T> q, Matrix<T> k, i64 heads, i64 kv, i64 dim, i64 seq,     \
                                                           i64 past, const __grid_constant__ Frequencies turn) {              \
        if (q.wide() && k.wide() && dim % 8 == 0 && turn.half % 8 == 0) rope<T, 8>(q, k, turn, heads, kv, dim, seq, past, BACK); \
        else rope<T, 1>(q, k, turn, heads, kv, dim, seq, past, BACK);                                                         \
    }
KERNEL(rope_bf16, bf16, false)
KERNEL(rope_f32, float, false)
KERNEL(rope_backward_bf16, bf16, true)
KERNEL(rope_backward_f32, float, true)
