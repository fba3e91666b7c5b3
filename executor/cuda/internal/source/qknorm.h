// How the heads of q and k are shared out where each has a norm of its own.
#pragma once
#include "rotation.h"

// QK is what a kernel is given. gemma: the weight is 1 more, and there is one
// rounding (Gemma3RMSNorm), not one ahead of the weight too (LlamaRMSNorm).
template <class T> struct QK {
    Matrix<T> q, k, qweight, kweight;
    i64 heads, kv, dim, seq, past, gemma;
    double epsilon;
};

// halves: both halves of a head turn with one another, and are wide. Then a head
// is some lanes', a power of two: each has eight values of both halves.
template <class T> __device__ bool halves(const QK<T> &task, const Frequencies &turn) {
    i64 lanes = task.dim / 16;
    return task.q.wide() && task.k.wide() && task.qweight.wide() && task.kweight.wide() && task.dim == 2 * turn.half && task.dim % 16 == 0 && (lanes & (lanes - 1)) == 0;
}

// Pair is eight values of both halves.
template <class T> struct Pair {
    Held<T, 8> first, second;
    __device__ void read(const T *at, i64 half) { first.read(at), second.read(at + half); }
    __device__ void write(T *at, i64 half) const { first.write(at), second.write(at + half); }
    __device__ float squares() const {
        const int N = 8;
        Several<8> one = first.get(), two = second.get();
        float sum = 0;
        EACH sum = fmaf(one.at[i], one.at[i], fmaf(two.at[i], two.at[i], sum));
        return sum;
    }
};

// sharedSum is the sum over lanes that have a head together, the same in all.
__device__ inline float sharedSum(float value, int lanes) {
    for (int away = lanes / 2; away > 0; away /= 2) value += __shfl_xor_sync(~0u, value, away);
    return value;
}

// Elsewhere a head is a warp's, in pairs: pair p is the values that turn together,
// p and half + p, and behind what turns 2p and 2p + 1. A lane has every 32nd pair.
const int PAIRS = 4; // heads of up to 256

struct Places {
    i64 first, second; // second is dim where there is none
    __device__ Places(i64 p, i64 half, i64 dim) : first(p < half ? p : 2 * p), second(p < half ? p + half : min(2 * p + 1, dim)) {}
};

#define OVER(p) _Pragma("unroll 1") for (int j = 0; j < PAIRS; j++) if (i64 p = threadIdx.x % 32 + 32 * j; p < (task.dim + 1) / 2)
