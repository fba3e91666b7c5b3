// The soft cap of logits, cap·tanh(logit/cap), rounded after each operation as
// Transformers' heads do (Gemma2ForCausalLM.forward); 0: there is none. In
// fp32 a call: its text is long.
#pragma once
#include "common.h"

template <class T> __noinline__ __device__ float capped(float logit, float cap) {
    return rounded<T>(rounded<T>(tanhf(rounded<T>(logit / cap))) * cap);
}

// In bf16 tanh is worked out as far as its rounding needs: x - x³/3 near 0, and
// 1 - 2/(1 + e²ˣ) with the hardware's exponential.
template <> __device__ inline float capped<bf16>(float logit, float cap) {
    float x = rounded<bf16>(__fdividef(logit, cap)), most = fminf(fmaxf(x, -10.0f), 10.0f);
    float tanh = fabsf(x) < 0.03f ? x - x * x * x / 3 : 1 - __fdividef(2, 1 + __expf(2 * most));
    return rounded<bf16>(rounded<bf16>(x == x ? tanh : x) * cap);
}

// cappedSlope is how a capped logit changes with what it was.
__device__ inline float cappedSlope(float logit, float cap) {
    float part = cap == 0 ? 0 : __fdividef(logit, cap);
    return 1 - part * part;
}
