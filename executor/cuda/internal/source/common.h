// What all kernels share: how values lie, how eight of them are read and
// written at once, and sums over a block. No header of CUDA's is needed.
//
// Everything is worked out in fp32, and rounded where modules of PyTorch round.
// Products are not fused with sums (-fmad=false) but where fmaf says so, so that
// a rounding is where it is written.
#pragma once

typedef long long i64;
typedef unsigned long long u64;

// bf16 is a value in 16 bits, the upper half of an fp32.
struct bf16 { unsigned short bits; };

__device__ inline float widen(float value) { return value; }
__device__ inline float widen(bf16 value) { return __uint_as_float((unsigned)value.bits << 16); }

template <class T> __device__ T narrow(float value);
template <> __device__ inline float narrow<float>(float value) { return value; }
template <> __device__ inline bf16 narrow<bf16>(float value) {
    bf16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
    return result;
}

// rounded is a value as it would be if it had been stored and read again.
template <class T> __device__ float rounded(float value) { return widen(narrow<T>(value)); }

// Matrix is an argument: rows of values, a row stride values behind the one
// before. Where an operand is missing its data is null.
template <class T> struct Matrix {
    T *data;
    i64 stride;
    __device__ T *at(i64 row, i64 column = 0) const { return data + row * stride + column; }
    // wide: rows begin at multiples of 16 bytes. A missing one is.
    __device__ bool wide() const { return ((u64)data | (u64)stride * sizeof(T)) % 16 == 0; }
};

// Eight is what a thread reads and writes at a time: 16 bytes of bf16.
struct Eight { float at[8]; };

#define EIGHT _Pragma("unroll") for (int i = 0; i < 8; i++)

// load reads eight values. WIDE: at is a multiple of 16 bytes and there are
// eight; otherwise one at a time those that are left, and others are 0.
__device__ inline Eight unpacked(uint4 four) {
    unsigned pairs[4] = {four.x, four.y, four.z, four.w};
    Eight result;
    EIGHT result.at[i] = __uint_as_float(i % 2 ? pairs[i / 2] & 0xffff0000u : pairs[i / 2] << 16);
    return result;
}

template <bool WIDE> __device__ Eight load(const bf16 *at, i64 left) {
    Eight result;
    if constexpr (WIDE) {
        result = unpacked(*(const uint4 *)at);
    } else {
        EIGHT result.at[i] = i < left ? widen(at[i]) : 0;
    }
    return result;
}

template <bool WIDE> __device__ Eight load(const float *at, i64 left) {
    Eight result;
    if constexpr (WIDE) {
        float4 low = ((const float4 *)at)[0], high = ((const float4 *)at)[1];
        result = Eight{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
    } else {
        EIGHT result.at[i] = i < left ? at[i] : 0;
    }
    return result;
}

// Held is eight values that are read ahead: bf16 as it lies, in half the registers.
template <class T, bool WIDE> struct Held {
    Eight values;
    __device__ void read(const T *at, i64 left) { values = load<WIDE>(at, left); }
    __device__ Eight get() const { return values; }
    __device__ void keep() {}
};
template <> struct Held<bf16, true> {
    uint4 four;
    __device__ void read(const bf16 *at, i64) { four = *(const uint4 *)at; }
    __device__ Eight get() const { return unpacked(four); }
    // keep has the compiler forget what get made, which it would hold in as many
    // registers again.
    __device__ void keep() { asm volatile("" : "+r"(four.x), "+r"(four.y), "+r"(four.z), "+r"(four.w)); }
};

template <bool WIDE> __device__ void store(bf16 *at, i64 left, const Eight &values) {
    if constexpr (WIDE) {
        unsigned pairs[4];
        _Pragma("unroll") for (int i = 0; i < 4; i++)
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[i]) : "f"(values.at[2 * i + 1]), "f"(values.at[2 * i]));
        *(uint4 *)at = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    } else {
        EIGHT if (i < left) at[i] = narrow<bf16>(values.at[i]);
    }
}

template <bool WIDE> __device__ void store(float *at, i64 left, const Eight &values) {
    if constexpr (WIDE) {
        ((float4 *)at)[0] = make_float4(values.at[0], values.at[1], values.at[2], values.at[3]);
        ((float4 *)at)[1] = make_float4(values.at[4], values.at[5], values.at[6], values.at[7]);
    } else {
        EIGHT if (i < left) at[i] = values.at[i];
    }
}

// Spot is the eight of a matrix that a thread of a launch by "eights" has.
struct Spot {
    i64 row, column;
    bool there;
    __device__ Spot(i64 rows, i64 columns) {
        unsigned each = (unsigned)((columns + 7) / 8), index = blockIdx.x * 256u + threadIdx.x;
        row = index / each;
        column = (i64)(index % each) * 8;
        there = row < rows;
    }
};

// A launch by "row" has threads for two eights each of up to LONGEST values.
const i64 LONGEST = 1024 * 2 * 8;

// over calls f(k, column) for the eights of a row that are this thread's: two,
// whose k is known when it is compiled, or as many as there are.
template <bool WIDE, class F> __device__ void over(i64 columns, F f) {
    if constexpr (WIDE) {
        _Pragma("unroll") for (int k = 0; k < 2; k++) {
            i64 column = (k * blockDim.x + threadIdx.x) * 8;
            if (column < columns) f(k, column);
        }
    } else {
        _Pragma("unroll 1") for (i64 column = threadIdx.x * 8; column < columns; column += blockDim.x * 8) f(0, column);
    }
}

// Line is a thread's eights of a row: kept in registers, or where they are not
// wide (which is rare, or a row is longer than LONGEST) read again.
template <class T, bool WIDE> struct Line {
    const T *row;
    i64 columns;
    Held<T, WIDE> kept[WIDE ? 2 : 1];
    __device__ Line(const T *row, i64 columns) : row(row), columns(columns) {
        if constexpr (WIDE) over<true>(columns, [&](int k, i64 column) { kept[k].read(row + column, columns - column); });
    }
    __device__ Eight get(int k, i64 column) const {
        if constexpr (WIDE) return kept[k].get();
        else return load<false>(row + column, columns - column);
    }
};

__device__ inline float warpSum(float value) {
    _Pragma("unroll") for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(~0u, value, away);
    return value;
}

__device__ inline float warpMax(float value) {
    _Pragma("unroll") for (int away = 16; away > 0; away /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, away));
    return value;
}

// blockSum is the sum over a block's threads, the same in all of them and in an
// order that follows from their number. room has 32 values, used once.
__device__ inline float blockSum(float value, float *room) {
    value = warpSum(value);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    return warpSum(threadIdx.x % 32 < blockDim.x / 32 ? room[threadIdx.x % 32] : 0);
}

__device__ inline float blockMax(float value, float *room) {
    value = warpMax(value);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    return warpMax(threadIdx.x % 32 < blockDim.x / 32 ? room[threadIdx.x % 32] : __int_as_float(0xff800000));
}

// blockSum in double, for sums over whole tensors.
__device__ inline double blockSum(double value, double *room) {
    _Pragma("unroll") for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(~0u, value, away);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < blockDim.x / 32 ? room[threadIdx.x % 32] : 0;
    _Pragma("unroll") for (int away = 16; away > 0; away /= 2) value += __shfl_xor_sync(~0u, value, away);
    return value;
}

// exponential of a value that is rounded to T afterwards: the hardware's own
// (two units of 2^-22) where T is bf16.
template <class T> __device__ float exponential(float value);
template <> __device__ inline float exponential<float>(float value) { return expf(value); }
template <> __device__ inline float exponential<bf16>(float value) { return __expf(value); }
