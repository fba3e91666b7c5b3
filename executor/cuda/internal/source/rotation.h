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

// Share is what a warp has of a launch by "warps": a row, or where there are fewer
// than the one block has warps, every so many of its heads.
struct Share {
    i64 row;
    int first, shares;
    __device__ Share(i64 rows) {
        int warp = threadIdx.x / 32;
        shares = rows < 8 ? 8 / (int)rows : 1;
        row = (i64)blockIdx.x * 8 + warp / shares, first = warp % shares;
    }
};

template <class T> __device__ float2 cosineAndSine(float angle);

// In fp32 it is a call: for large angles its text is long.
__noinline__ __device__ float2 cosineAndSineInFull(float angle) {
    float2 result;
    sincosf(angle, &result.y, &result.x);
    return result;
}
template <> __device__ inline float2 cosineAndSine<float>(float angle) { return cosineAndSineInFull(angle); }

// In bf16 the hardware's, off by 2^-21 of an angle up to π (CUDA C++ Programming
// Guide, intrinsic functions), which whole turns are taken from first: their number
// times 2π, in two parts, is exact until the remainder is rounded.
template <> __device__ inline float2 cosineAndSine<bf16>(float angle) {
    const float WHOLE = 12582912; // 1.5·2^23: what is added to it is rounded to a whole number
    float turns = fmaf(angle, 0.15915494f, WHOLE) - WHOLE, rest = fmaf(turns, 1.7484556e-7f, fmaf(turns, -6.2831855f, angle));
    float2 result;
    asm("cos.approx.ftz.f32 %0, %1;" : "=f"(result.x) : "f"(rest));
    asm("sin.approx.ftz.f32 %0, %1;" : "=f"(result.y) : "f"(rest));
    return result;
}

// Turn is the cosines and sines of N angles from first on: the angle in fp32 as
// torch has it, what is made of it rounded to the type of the heads.
template <class T, int N> struct Turn {
    Held<T, N> cosines, sines;
    __device__ Turn(const Frequencies &turn, i64 position, i64 first, bool back) {
        Several<N> across, up;
        float factor = (float)turn.factor;
        EACH {
            float2 both = cosineAndSine<T>((float)position * turn.inverse[first + i]);
            across.at[i] = both.x * factor, up.at[i] = both.y * (back ? -factor : factor);
        }
        cosines.set(across), sines.set(up);
    }
};

// turned turns a pair: both products are rounded, and their sum is.
template <class T> __device__ void turned(float &first, float &second, float cosine, float sine) {
    float one = rounded<T>(rounded<T>(first * cosine) + rounded<T>(-second * sine));
    second = rounded<T>(rounded<T>(second * cosine) + rounded<T>(first * sine));
    first = one;
}

template <class T, int N> __device__ void turned(Held<T, N> &first, Held<T, N> &second, const Turn<T, N> &by) {
    Several<N> one = first.get(), two = second.get(), cosines = by.cosines.get(), sines = by.sines.get();
    EACH turned<T>(one.at[i], two.at[i], cosines.at[i], sines.at[i]);
    first.set(one), second.set(two);
}

__device__ inline void turnedBoth(unsigned &first, unsigned &second, unsigned cosine, unsigned sine) {
    unsigned one = fmaBoth(productBoth(second, sine), 0xbf80bf80u, productBoth(first, cosine));
    second = fmaBoth(productBoth(first, sine), 0x3f803f80u, productBoth(second, cosine));
    first = one;
}

template <> __device__ inline void turned<bf16, 8>(Held<bf16, 8> &first, Held<bf16, 8> &second, const Turn<bf16, 8> &by) {
    uint4 cosines = by.cosines.four, sines = by.sines.four;
    turnedBoth(first.four.x, second.four.x, cosines.x, sines.x), turnedBoth(first.four.y, second.four.y, cosines.y, sines.y);
    turnedBoth(first.four.z, second.four.z, cosines.z, sines.z), turnedBoth(first.four.w, second.four.w, cosines.w, sines.w);
}
