// What all kernels share: how values lie, how eight of them are read and
// written at once, and sums over a block. No header of CUDA's is needed.
//
// Everything is computed in fp32, and rounded where modules of PyTorch round.
// Products are not fused with sums (-fmad=false) but where fmaf says so, so that
// a rounding is where it is written.
#pragma once

typedef long long i64;
typedef unsigned long long u64;

// bf16 is a value in 16 bits, the upper half of an fp32.
struct bf16 { unsigned short bits; };

__device__ inline float widen(float value) { return value; }
__device__ inline float widen(bf16 value) { return __uint_as_float((unsigned)value.bits << 16); }

// bothHalves are two values in bf16, the first in the upper half. A single value is
// rounded so too: cvt.rn.bf16.f32 takes eight times as long on sm_90.
__device__ inline unsigned bothHalves(float upper, float lower) {
    unsigned result;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(upper), "f"(lower));
    return result;
}

// fmaBoth is a·b + c of two values at once, rounded once: as fp32 would have it
// rounded where c is -0, for a product of values in bf16 is exact there, or where b
// is 1 or -1, for a sum that is not lies nowhere near half of a last place.
__device__ inline unsigned fmaBoth(unsigned a, unsigned b, unsigned c) {
    unsigned result;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}
__device__ inline unsigned productBoth(unsigned a, unsigned b) { return fmaBoth(a, b, 0x80008000u); }

__device__ inline unsigned maxBoth(unsigned a, unsigned b) {
    unsigned result;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
    return result;
}

template <class T> __device__ T narrow(float value);
template <> __device__ inline float narrow<float>(float value) { return value; }
template <> __device__ inline bf16 narrow<bf16>(float value) { return {(unsigned short)bothHalves(0, value)}; }

// rounded is a value as it would be if it had been stored and read again.
template <class T> __device__ float rounded(float value);
template <> __device__ inline float rounded<float>(float value) { return value; }
template <> __device__ inline float rounded<bf16>(float value) { return __uint_as_float(bothHalves(value, 0)); }

// Matrix is an argument: rows of values, a row stride values behind the one
// before. Where an operand is missing its data is null.
template <class T> struct Matrix {
    T *data;
    i64 stride;
    __device__ T *at(i64 row, i64 column = 0) const { return data + row * stride + column; }
    // wide: rows begin at multiples of 16 bytes. A missing one is.
    __device__ bool wide() const { return ((u64)data | (u64)stride * sizeof(T)) % 16 == 0; }
};

// Place is an argument: how many tokens came before the rows of all sequences. It is
// past and what lies at since, which changes from token to token; with past < 0 rows
// have the places of their sequences.
struct Place {
    i64 past;
    const int *since;
    __device__ i64 get() const { return past < 0 ? past : past + *since; }
};

// fresh is 16 bytes as they lie in the L2 cache: another block may have written them.
__device__ inline uint4 fresh(const void *at) {
    uint4 four;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w) : "l"(at) : "memory");
    return four;
}

// Several is what a thread reads and writes at a time: eight values, 16 bytes of
// bf16, where rows are wide; elsewhere, which is rare, one.
template <int N> struct Several { float at[N]; };

#define EACH _Pragma("unroll") for (int i = 0; i < N; i++)

__device__ inline Several<8> unpacked(uint4 four) {
    unsigned pairs[4] = {four.x, four.y, four.z, four.w};
    Several<8> result;
    _Pragma("unroll") for (int i = 0; i < 8; i++) result.at[i] = __uint_as_float(i % 2 ? pairs[i / 2] & 0xffff0000u : pairs[i / 2] << 16);
    return result;
}

__device__ inline Several<8> loadEight(const bf16 *at) { return unpacked(*(const uint4 *)at); }
__device__ inline Several<8> loadEight(const float *at) {
    float4 low = ((const float4 *)at)[0], high = ((const float4 *)at)[1];
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

__device__ inline uint4 packed(const Several<8> &values) {
    const float *v = values.at;
    return make_uint4(bothHalves(v[1], v[0]), bothHalves(v[3], v[2]), bothHalves(v[5], v[4]), bothHalves(v[7], v[6]));
}

__device__ inline void storeEight(bf16 *at, const Several<8> &values) { *(uint4 *)at = packed(values); }
__device__ inline void storeEight(float *at, const Several<8> &values) {
    ((float4 *)at)[0] = make_float4(values.at[0], values.at[1], values.at[2], values.at[3]);
    ((float4 *)at)[1] = make_float4(values.at[4], values.at[5], values.at[6], values.at[7]);
}

template <int N, class T> __device__ Several<N> load(const T *at) {
    if constexpr (N == 8) return loadEight(at);
    else return {{widen(*at)}};
}

template <int N, class T> __device__ void store(T *at, const Several<N> &values) {
    if constexpr (N == 8) storeEight(at, values);
    else *at = narrow<T>(values.at[0]);
}

// Held is values as they lie: bf16 in half the registers, what is set rounded.
template <class T, int N> struct Held {
    Several<N> values;
    __device__ void read(const T *at) { values = load<N>(at); }
    __device__ void write(T *at) const { store<N>(at, values); }
    __device__ Several<N> get() const { return values; }
    __device__ void set(const Several<N> &made) { EACH values.at[i] = rounded<T>(made.at[i]); }
    __device__ void times(const Held &other) { EACH values.at[i] = rounded<T>(values.at[i] * other.values.at[i]); }
    __device__ void keep() {}
};
template <> struct Held<bf16, 8> {
    uint4 four;
    __device__ void read(const bf16 *at) { four = *(const uint4 *)at; }
    __device__ void write(bf16 *at) const { *(uint4 *)at = four; }
    __device__ Several<8> get() const { return unpacked(four); }
    __device__ void set(const Several<8> &made) { four = packed(made); }
    __device__ void times(const Held &other) {
        four = make_uint4(productBoth(four.x, other.four.x), productBoth(four.y, other.four.y), productBoth(four.z, other.four.z), productBoth(four.w, other.four.w));
    }
    // keep has the compiler forget what get made, which it would hold in as many
    // registers again.
    __device__ void keep() { asm volatile("" : "+r"(four.x), "+r"(four.y), "+r"(four.z), "+r"(four.w)); }
};

// Count is how many values a body is compiled for.
template <int N> struct Count { enum { value = N }; };
#define BODY [&](auto several, i64 row, i64 column) { const int N = several.value;

// eights calls body for the eight values of a matrix that a thread of a launch by
// "eights" has: with all, or where rows are not wide one after the other.
template <class F> __device__ void eights(i64 rows, i64 columns, bool wide, F body) {
    unsigned each = (unsigned)((columns + 7) / 8), index = blockIdx.x * 256u + threadIdx.x;
    i64 row = index / each, column = (i64)(index % each) * 8, end = min(column + 8, columns);
    if (row >= rows) return;
    if (wide && columns % 8 == 0) body(Count<8>(), row, column);
    else _Pragma("unroll 1") for (; column < end; column++) body(Count<1>(), row, column);
}

// A launch by "row" has threads for two eights each of a row of up to LONGEST
// values, one by "row4" for four of twice as many: DEEP. over calls f(k, column) for
// a thread's, whose k is known when it is compiled; or for as many as there are, by
// values.
const i64 LONGEST = 1024 * 2 * 8;

template <int N, int DEEP, class F> __device__ void over(i64 columns, F f) {
    if constexpr (N == 8) {
        _Pragma("unroll") for (int k = 0; k < DEEP; k++) {
            i64 column = (k * blockDim.x + threadIdx.x) * 8;
            if (column < columns) f(k, column);
        }
    } else {
        _Pragma("unroll 1") for (i64 base = threadIdx.x * 8; base < columns; base += blockDim.x * 8)
            _Pragma("unroll 1") for (i64 column = base; column < min(base + 8, columns); column++) f(0, column);
    }
}

// Line is a thread's eights of a row: kept in registers, or where they are not
// wide (which is rare, or a row is longer than threads have) read again.
template <class T, int N, int DEEP> struct Line {
    const T *row;
    Held<T, 8> kept[N == 8 ? DEEP : 1];
    __device__ Line(const T *row, i64 columns) : row(row) {
        if constexpr (N == 8) over<8, DEEP>(columns, [&](int k, i64 column) { kept[k].read(row + column); });
    }
    __device__ Several<N> get(int k, i64 column) const { return held(k, column).get(); }
    __device__ Held<T, N> held(int k, i64 column) const {
        if constexpr (N == 8) return kept[k];
        Held<T, N> one;
        one.read(row + column);
        return one;
    }
};

// Largest is the largest of what it took, or the lowest number there is.
template <class T, int N> struct Largest {
    float most = -3.402823466e38f;
    __device__ void take(const Held<T, N> &held) {
        Several<N> values = held.get();
        EACH most = fmaxf(most, values.at[i]);
    }
    __device__ float get() const { return most; }
};
template <> struct Largest<bf16, 8> {
    unsigned both = 0xff7fff7fu;
    __device__ void take(const Held<bf16, 8> &held) {
        both = maxBoth(both, maxBoth(maxBoth(held.four.x, held.four.y), maxBoth(held.four.z, held.four.w)));
    }
    __device__ float get() const { return fmaxf(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000u)); }
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

// Functions of values that are rounded to bf16 afterwards: the hardware's own (two
// units of 2^-22), of what is too small for a normal number 0.
__device__ inline float quickPower(float x) { // 2ˣ
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
__device__ inline float quickInverse(float x) {
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
// quickTanh is off by 2^-11 at most, a quarter of what it is rounded by (PTX ISA, tanh).
__device__ inline float quickTanh(float x) {
    float result;
    asm("tanh.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
const float LOG2E = 1.4426950408889634f;

template <class T> __device__ float exponential(float value);
template <> __device__ inline float exponential<float>(float value) { return expf(value); }
template <> __device__ inline float exponential<bf16>(float value) { return quickPower(value * LOG2E); }

// beside is exponential(value·unit - most).
template <class T> __device__ float beside(float value, float unit, float most);
template <> __device__ inline float beside<float>(float value, float unit, float most) { return expf(value * unit - most); }
template <> __device__ inline float beside<bf16>(float value, float unit, float most) { return quickPower(fmaf(value, unit * LOG2E, -most * LOG2E)); }

// inverseRoot is 1/√x.
template <class T> __device__ float inverseRoot(float x);
template <> __device__ inline float inverseRoot<float>(float x) { return 1 / sqrtf(x); }
template <> __device__ inline float inverseRoot<bf16>(float x) {
    float result;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}
