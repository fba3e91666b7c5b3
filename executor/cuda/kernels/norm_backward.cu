#include "common.h"

// norm_backward: the gradient of a norm's input (+ add), with n the normed row
// and g the gradient of it rstd·(g − mean(g) − n·mean(g·n)), without the first
// mean but in LayerNorm; and sums for those of weight and bias. Row i belongs to
// part i modulo the parts; a part is a block, in which teams of threads go
// through its rows side by side. A thread keeps the sums of its columns in
// registers, and the teams' are added in their order.
//
// K is how many eights a thread has of a row: 1 in all models of up to 8192.
template <class T, bool WIDE, int K>
__device__ void back(Matrix<T> dy, Matrix<T> x, Matrix<float> rstd, Matrix<float> mean, Matrix<T> weight, Matrix<T> add, Matrix<T> dx,
                     Matrix<float> sums, Matrix<float> biases, i64 rows, i64 columns, i64 style, i64 parts, float2 (*room)[32], float *gather) {
    int threads = (int)min((columns + 255) / 256 * 32, (i64)1024), teams = blockDim.x / threads;
    int team = threadIdx.x / threads, own = threadIdx.x % threads, warps = threads / 32, first = team * warps;
    Eight factor[K], weights[K], shifts[K];
    _Pragma("unroll") for (int k = 0; k < K; k++) {
        i64 column = ((i64)k * threads + own) * 8;
        EIGHT factor[k].at[i] = weights[k].at[i] = shifts[k].at[i] = 0;
        if (column >= columns) continue;
        factor[k] = load<WIDE>(weight.at(0, column), columns - column);
        if (style == 1) EIGHT factor[k].at[i] += 1;
    }
    int turn = 0;
    for (i64 row = blockIdx.x + parts * team; row < rows; row += parts * teams, turn ^= 1) {
        Eight normed[K], slope[K], more[K];
        float inverse = *rstd.at(row), center = mean.data ? *mean.at(row) : 0;
        float2 total = make_float2(0, 0);
        _Pragma("unroll") for (int k = 0; k < K; k++) {
            i64 column = ((i64)k * threads + own) * 8, left = columns - column;
            if (column >= columns) continue;
            normed[k] = load<WIDE>(x.at(row, column), left);
            slope[k] = load<WIDE>(dy.at(row, column), left);
            if (add.data) more[k] = load<WIDE>(add.at(row, column), left);
            EIGHT {
                float n = (normed[k].at[i] - center) * inverse, g = slope[k].at[i];
                weights[k].at[i] = fmaf(g, n, weights[k].at[i]);
                shifts[k].at[i] += g;
                g *= factor[k].at[i];
                total.x += g;
                total.y = fmaf(g, n, total.y);
                normed[k].at[i] = n;
                slope[k].at[i] = g;
            }
        }
        total.x = warpSum(total.x), total.y = warpSum(total.y);
        if (warps > 1) { // teams meet alone: other teams may have no row left
            if (threadIdx.x % 32 == 0) room[turn][threadIdx.x / 32] = total;
            asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
            int lane = threadIdx.x % 32;
            total = lane < warps ? room[turn][first + lane] : make_float2(0, 0);
            total.x = warpSum(total.x), total.y = warpSum(total.y);
        }
        float along = style == 2 ? total.x / columns : 0, product = total.y / columns;
        _Pragma("unroll") for (int k = 0; k < K; k++) {
            i64 column = ((i64)k * threads + own) * 8, left = columns - column;
            if (column >= columns) continue;
            EIGHT {
                float made = inverse * (slope[k].at[i] - along - normed[k].at[i] * product);
                slope[k].at[i] = add.data ? made + more[k].at[i] : made;
            }
            store<WIDE>(dx.at(row, column), left, slope[k]);
        }
    }
    for (int what = 0; what < (biases.data ? 2 : 1); what++) {
        for (int other = 1; K == 1 && other < teams; other++) {
            __syncthreads();
            if (team == other) EIGHT gather[i * threads + own] = (what ? shifts[0] : weights[0]).at[i];
            __syncthreads();
            if (team == 0) EIGHT (what ? shifts[0] : weights[0]).at[i] += gather[i * threads + own];
        }
        _Pragma("unroll") for (int k = 0; k < K; k++) {
            i64 column = ((i64)k * threads + own) * 8;
            if (team == 0 && column < columns)
                store<false>((what ? biases : sums).at(blockIdx.x, column), columns - column, what ? shifts[k] : weights[k]);
        }
    }
}

#define ARGUMENTS dy, x, rstd, mean, weight, add, dx, sums, biases, rows, columns, style, parts, room, gather
#define KERNEL(NAME, T)                                                                                                                \
    extern "C" __global__ void __launch_bounds__(1024, 1)                                                                               \
        NAME(Matrix<T> dy, Matrix<T> x, Matrix<float> rstd, Matrix<float> mean, Matrix<T> weight, Matrix<T> add, Matrix<T> dx,         \
             Matrix<float> sums, Matrix<float> biases, i64 rows, i64 columns, i64 style, i64 parts) {                                  \
        __shared__ float2 room[2][32];                                                                                                  \
        __shared__ float gather[8192];                                                                                                 \
        bool wide = dy.wide() && x.wide() && weight.wide() && add.wide() && dx.wide() && columns % 8 == 0;                             \
        if (columns > 8192)                                                                                                            \
            back<T, false, 4>(ARGUMENTS);                                                                                              \
        else if (wide)                                                                                                                 \
            back<T, true, 1>(ARGUMENTS);                                                                                               \
        else                                                                                                                           \
            back<T, false, 1>(ARGUMENTS);                                                                                              \
    }
KERNEL(norm_backward_bf16, bf16)
KERNEL(norm_backward_f32, float)
