#include "common.h"

// attention_delta is Σ y·dy a row and head: a block a row, some lanes a head, a
// power of two so that they add up among themselves.
template <class T, int N> __device__ void delta(Matrix<T> y, Matrix<T> dy, Matrix<float> delta, i64 heads, i64 dim) {
    int lanes = 1;
    while (lanes < 32 && lanes * N < dim) lanes *= 2;
    int lane = threadIdx.x % lanes, each = blockDim.x / lanes;
    _Pragma("unroll 1") for (i64 base = 0; base < heads; base += each) {
        i64 head = base + threadIdx.x / lanes;
        float sum = 0;
        if (head < heads)
            _Pragma("unroll 1") for (i64 column = lane * N; column < dim; column += lanes * N) {
                Several<N> one = load<N>(y.at(blockIdx.x, head * dim + column)), two = load<N>(dy.at(blockIdx.x, head * dim + column));
                EACH sum = fmaf(one.at[i], two.at[i], sum);
            }
        for (int away = lanes / 2; away > 0; away /= 2) sum += __shfl_xor_sync(~0u, sum, away);
        if (head < heads && lane == 0) *delta.at(blockIdx.x, head) = sum;
    }
}

#define KERNEL(NAME, T)                                                                                      \
    extern "C" __global__ void __launch_bounds__(256, 8)                                                     \
        NAME(Matrix<T> y, Matrix<T> dy, Matrix<float> sums, i64 heads, i64 dim) {                            \
        if (y.wide() && dy.wide() && dim % 8 == 0) delta<T, 8>(y, dy, sums, heads, dim);                     \
        else delta<T, 1>(y, dy, sums, heads, dim);                                                           \
    }
KERNEL(attention_delta_bf16, bf16)
KERNEL(attention_delta_f32, float)
