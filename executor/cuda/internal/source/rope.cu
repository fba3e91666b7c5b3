#include "rotation.h"

// rope turns q and k in place, rope_backward their gradients back: the same
// with other signs of sines (back). A warp has a row of both: each lane some angles,
// N side by side, of one head and of every so many after it, whose pairs are read
// AHEAD of what is turned.
const int AHEAD = 2;

template <class T, int N>
__device__ void rope(Matrix<T> q, Matrix<T> k, const Frequencies &turn, i64 rows, int heads, int kv, i64 dim, i64 seq, i64 past, bool back) {
    Share share(rows);
    i64 row = share.row;
    int half = (int)turn.half, lanes = N == 8 ? half / 8 : 32, lane = threadIdx.x % 32, all = heads + kv, abreast = 32 / max(lanes, 1), step = abreast * share.shares;
    if (row >= rows || lane >= abreast * lanes) return;
    Held<T, N> first[AHEAD], second[AHEAD];
    _Pragma("unroll 1") for (int pair = lane % lanes * N; pair < half; pair += lanes * N) {
        int own = share.first * abreast + lane / lanes;
        auto place = [&](int head) { return (head < heads ? q.at(row, head * dim) : k.at(row, (head - heads) * dim)) + pair; };
        auto fetch = [&](int j, int head) {
            if (head < all) first[j].read(place(head)), second[j].read(place(head) + half);
        };
        _Pragma("unroll") for (int j = 0; j < AHEAD; j++) fetch(j, own + j * step);
        Turn<T, N> by(turn, position(row, seq, past), pair, back);
        _Pragma("unroll 1") for (; own < all; own += AHEAD * step)
            _Pragma("unroll") for (int j = 0; j < AHEAD; j++) {
                int head = own + j * step;
                if (head >= all) break;
                turned(first[j], second[j], by);
                T *at = place(head);
                first[j].write(at), second[j].write(at + half);
                fetch(j, head + AHEAD * step);
            }
    }
}

#define KERNEL(NAME, T, BACK)                                                                                                               \
    extern "C" __global__ void __launch_bounds__(256, sizeof(T) == 2 ? 4 : 2)                                                               \
        NAME(Matrix<T> q, Matrix<T> k, i64 rows, i64 heads, i64 kv, i64 dim, i64 seq, Place past, const __grid_constant__ Frequencies turn) { \
        if (q.wide() && k.wide() && dim % 8 == 0 && turn.half % 8 == 0)                                                                     \
            rope<T, 8>(q, k, turn, rows, (int)heads, (int)kv, dim, seq, past.get(), BACK);                                                        \
        else                                                                                                                                \
            rope<T, 1>(q, k, turn, rows, (int)heads, (int)kv, dim, seq, past.get(), BACK);                                                        \
    }
KERNEL(rope_bf16, bf16, false)
KERNEL(rope_f32, float, false)
KERNEL(rope_backward_bf16, bf16, true)
KERNEL(rope_backward_f32, float, true)
