// Functions between projections, with their slopes: an argument selects one at run time,
// the same for all threads. The approximation of gelu is by Hendrycks and Gimpel
// (arXiv 1606.08415): x/2·(1 + tanh u) = x·sigmoid(2u).
#pragma once
#include "common.h"

enum Activation { SILU, GELU, GELU_TANH, RELU, TANH };

// sigmoid is 1/(1 + e⁻ˣ), of what is rounded to bf16 with the hardware's division.
template <class T> __device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }
template <> __device__ inline float sigmoid<bf16>(float x) { return quickInverse(1 + quickPower(-LOG2E * x)); }

const float ROOT = 0.7978845608028654f, CUBIC = 0.044715f; // √(2/π)

// tangent is tanh: in fp32 a call, as its text is long.
template <class T> __noinline__ __device__ float tangentInFull(float x) { return tanhf(x); }
template <class T> __device__ float tangent(float x) { return tangentInFull<T>(x); }
template <> __device__ inline float tangent<bf16>(float x) { return quickTanh(x); }

// normal is the standard normal distribution function, in fp32 a call too. For what
// is rounded to bf16: Abramowitz and Stegun 7.1.26, off by 1.5e-7 at most; of a
// negative x it is not a difference, so that it has as many digits as a positive one's.
template <class T> __noinline__ __device__ float normalInFull(float x) { return erfcf(x * -0.7071067811865476f) / 2; }
template <class T> __device__ float normal(float x) { return normalInFull<T>(x); }
template <> __device__ inline float normal<bf16>(float x) {
    float t = quickInverse(fmaf(0.3275911f * 0.7071067811865476f, fabsf(x), 1));
    float sum = fmaf(t, fmaf(t, fmaf(t, fmaf(t, 1.061405429f, -1.453152027f), 1.421413741f), -0.284496736f), 0.254829592f);
    float tail = sum * t * quickPower(x * x * (-LOG2E / 2)) / 2;
    return x < 0 ? tail : 1 - tail;
}

template <class T> __device__ float activated(i64 kind, float x) {
    switch (kind) {
    case SILU: return x * sigmoid<T>(x);
    case GELU: return x * normal<T>(x);
    case GELU_TANH: return x * sigmoid<T>(2 * ROOT * (x + CUBIC * x * x * x));
    case RELU: return x > 0 ? x : x == x ? 0 : x;
    default: return tangent<T>(x);
    }
}

// slope is the derivative.
template <class T> __device__ float slope(i64 kind, float x) {
    float part;
    switch (kind) {
    case SILU:
        part = sigmoid<T>(x);
        return part * (1 + x * (1 - part));
    case GELU: return normal<T>(x) + x * exponential<T>(x * x / -2) * 0.3989422804014327f; // 1/√(2π)
    case GELU_TANH:
        part = sigmoid<T>(2 * ROOT * (x + CUBIC * x * x * x));
        return part + 2 * x * part * (1 - part) * ROOT * (1 + 3 * CUBIC * x * x);
    case RELU: return x > 0;
    default:
        part = tangent<T>(x);
        return 1 - part * part;
    }
}
