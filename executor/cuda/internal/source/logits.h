// The soft cap of logits, cap·tanh(logit/cap), rounded after each operation as
// Transformers' heads do (Gemma2ForCausalLM.forward); 0: there is none.
#pragma once
#include "common.h"

template <class T> __device__ float capped(float logit, float cap);

// In fp32 it is a call: its text is long.
__noinline__ __device__ float cappedInFull(float logit, float cap) { return tanhf(logit / cap) * cap; }
template <> __device__ inline float capped<float>(float logit, float cap) { return cappedInFull(logit, cap); }

template <> __device__ inline float capped<bf16>(float logit, float cap) {
    return rounded<bf16>(rounded<bf16>(quickTanh(rounded<bf16>(logit * (1 / cap)))) * cap);
}

// cappedSlope is how a capped logit changes with what it was.
__device__ inline float cappedSlope(float logit, float cap) {
    float part = cap == 0 ? 0 : logit * (1 / cap);
    return 1 - part * part;
}
