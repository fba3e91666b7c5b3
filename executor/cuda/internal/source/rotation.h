// Rotation of heads by their position (apply_rotary_pos_emb of Transformers'
// models): value i of the first half of what turns with value i of the second.
#pragma once
#include "common.h"

// Frequencies is an argument: radians a position, for heads of up to 256.
// half is how many there are; with 0 nothing turns.
struct Frequencies {
    i64 half;
    double factor; // of cosines and sines
    float inverse[128];
};

// position is where a row stands: past, or with past < 0 its place in its
// sequence.
__device__ inline i64 position(i64 row, i64 seq, i64 past) { return past >= 0 ? past : (unsigned)row % (unsigned)seq; }

// cosineAndSine is a call: for large angles its text is long.
__noinline__ __device__ float2 cosineAndSine(float angle) {
    float2 result;
    sincosf(angle, &result.y, &result.x);
    return result;
}

// angles works out a block's cosines and sines of a position: the angle in
// fp32 as torch has it, what is made of it rounded to the type of the heads.
template <class T> __device__ void angles(const Frequencies &turn, i64 position, float *cosines, float *sines) {
    for (int i = threadIdx.x; i < turn.half; i += blockDim.x) {
        float2 both = cosineAndSine((float)position * turn.inverse[i]);
        cosines[i] = rounded<T>(both.x * (float)turn.factor), sines[i] = rounded<T>(both.y * (float)turn.factor);
    }
}

// turned turns a pair: both products are rounded, and their sum is.
template <class T> __device__ void turned(float &first, float &second, float cosine, float sine) {
    float one = rounded<T>(rounded<T>(first * cosine) + rounded<T>(-second * sine));
    second = rounded<T>(rounded<T>(second * cosine) + rounded<T>(first * sine));
    first = one;
}
