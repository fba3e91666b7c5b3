#include "logits.h"

// softcap caps logits in place.
template <class T, bool WIDE> __device__ void softcap(Matrix<T> x, const Spot &spot, i64 columns, double cap) {
    Eight values = load<WIDE>(x.at(spot.row, spot.column), columns - spot.column);
    EIGHT values.at[i] = capped<T>(values.at[i], (float)cap);
    store<WIDE>(x.at(spot.row, spot.column), columns - spot.column, values);
}

// argmax is the first of the largest of a row, a block each; 0 of a row that
// has no number above -∞.
template <class T, bool WIDE> __device__ void argmax(Matrix<T> x, int *ids, i64 columns) {
    __shared__ float most[32];
    __shared__ int first[32];
    float best = __int_as_float(0xff800000);
    int index = 0x7fffffff;
    for (i64 column = (i64)threadIdx.x * 8; column < columns; column += blockDim.x * 8) {
        Eight values = load<WIDE>(x.at(blockIdx.x, column), columns - column);
        EIGHT if ((WIDE || i < columns - column) && values.at[i] > best) best = values.at[i], index = (int)column + i;
    }
    for (int rest = 0; rest < 2; rest++) {
        _Pragma("unroll") for (int away = 16; away > 0; away /= 2) {
            float value = __shfl_xor_sync(~0u, best, away);
            int other = __shfl_xor_sync(~0u, index, away);
            if (value > best || (value == best && other < index)) best = value, index = other;
        }
        if (rest) break;
        if (threadIdx.x % 32 == 0) most[threadIdx.x / 32] = best, first[threadIdx.x / 32] = index;
        __syncthreads();
        bool there = threadIdx.x % 32 < blockDim.x / 32;
        best = there ? most[threadIdx.x % 32] : __int_as_float(0xff800000), index = there ? first[threadIdx.x % 32] : 0x7fffffff;
    }
    if (threadIdx.x == 0) ids[blockIdx.x] = index == 0x7fffffff ? 0 : index;
}

#define KERNELS(SOFTCAP, ARGMAX, T)                                                                \
    extern "C" __global__ void SOFTCAP(Matrix<T> x, i64 rows, i64 columns, double cap) {           \
        Spot spot(rows, columns);                                                                  \
        if (!spot.there) return;                                                                   \
        if (x.wide() && columns % 8 == 0) softcap<T, true>(x, spot, columns, cap);                 \
        else softcap<T, false>(x, spot, columns, cap);                                             \
    }                                                                                              \
    extern "C" __global__ void ARGMAX(Matrix<T> x, int *ids, i64 columns) {                        \
        if (x.wide() && columns % 8 == 0) argmax<T, true>(x, ids, columns);                        \
        else argmax<T, false>(x, ids, columns);                                                    \
    }
KERNELS(softcap_bf16, argmax_bf16, bf16)
KERNELS(softcap_f32, argmax_f32, float)
