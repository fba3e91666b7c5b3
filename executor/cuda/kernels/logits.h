// The soft cap of logits, cap·tanh(logit/cap), rounded after each operation as
// Transformers' heads do (Gemma2ForCausalLM.forward); 0: there is none. A call:
// few models have one, and its text is long.
#pragma once
#include "common.h"

template <class T> __noinline__ __device__ float capped(float logit, float cap) {
    return cap == 0 ? logit : rounded<T>(rounded<T>(tanhf(rounded<T>(logit / cap))) * cap);
}

// cappedSlope is how a capped logit changes with what it was.
__device__ inline float cappedSlope(float logit, float cap) {
    float part = cap == 0 ? 0 : logit / cap;
    return 1 - part * part;
}
