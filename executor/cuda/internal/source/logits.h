// The soft cap of logits, cap·tanh(logit/cap); 0: there is none.
#pragma once
#include "common.h"

// bent is tanh(logit/cap). The loss works with it as it is: what roundings would add
// is error alone. In fp32 it is a call: its text is long.
__noinline__ __device__ float bentInFull(float logit, float cap) { return tanhf(logit / cap); }
template <class T> __device__ float bent(float logit, float cap);
template <> __device__ inline float bent<float>(float logit, float cap) { return bentInFull(logit, cap); }
template <> __device__ inline float bent<bf16>(float logit, float cap) { return quickTanh(logit * (1 / cap)); }

// capped is what is stored, rounded after each operation as Transformers' heads do
// (Gemma2ForCausalLM.forward).
template <class T> __device__ float capped(float logit, float cap);
template <> __device__ inline float capped<float>(float logit, float cap) { return bent<float>(logit, cap) * cap; }
template <> __device__ inline float capped<bf16>(float logit, float cap) {
    return rounded<bf16>(rounded<bf16>(quickTanh(rounded<bf16>(logit * (1 / cap)))) * cap);
}

