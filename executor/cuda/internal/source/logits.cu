#include "logits.h"

// argmax is the first of the largest of a row, a block each; 0 of a row that
// has no number above -∞.
template <class T, int N> __device__ void argmax(Matrix<T> x, int *ids, i64 columns) {
    __shared__ float most[32];
    __shared__ int first[32];
    float best = __int_as_float(0xff800000);
    int index = 0x7fffffff;
    for (i64 column = (i64)threadIdx.x * N; column < columns; column += blockDim.x * N) {
        Several<N> values = load<N>(x.at(blockIdx.x, column));
        EACH if (values.at[i] > best) best = values.at[i], index = (int)column + i;
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

// softcap caps logits in place.
#define KERNELS(SOFTCAP, ARGMAX, T)                                                                \
    extern "C" __global__ void SOFTCAP(Matrix<T> x, i64 rows, i64 columns, double cap) {           \
        eights(rows, columns, x.wide(), BODY                                                       \
            Several<N> values = load<N>(x.at(row, column));                                        \
            EACH values.at[i] = capped<T>(values.at[i], (float)cap);                               \
            store<N>(x.at(row, column), values);                                                   \
        });                                                                                        \
    }                                                                                              \
    extern "C" __global__ void ARGMAX(Matrix<T> x, int *ids, i64 columns) {                        \
        if (x.wide() && columns % 8 == 0) argmax<T, 8>(x, ids, columns);                           \
        else argmax<T, 1>(x, ids, columns);                                                        \
    }
KERNELS(softcap_bf16, argmax_bf16, bf16)
KERNELS(softcap_f32, argmax_f32, float)
