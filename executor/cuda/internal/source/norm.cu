#include "common.h"

// norm: a block a row, which it holds in registers. RMSNorm is rounded before it
// is multiplied by the weight and after it (LlamaRMSNorm), Gemma's and
// LayerNorm once; a branch's norm is rounded before the stream is added to it.
// Without y it is for the 1/σ and the mean of rows alone; again: these are
// there (norm_again). Reads and writes every value once.
enum { RMS, GEMMA, LAYER };

const int DEEP = 2; // by row

template <class T, int N>
__device__ void norm(Matrix<T> x, Matrix<T> weight, Matrix<T> bias, Matrix<T> add, Matrix<T> y, Matrix<float> rstd, Matrix<float> mean,
                     i64 columns, i64 style, double epsilon, i64 again) {
    __shared__ float room[2][32];
    i64 row = blockIdx.x;
    Line<T, N, DEEP> line(x.at(row), columns);
    float center = 0, inverse;
    if (again) {
        inverse = *rstd.at(row);
        if (mean.data) center = *mean.at(row);
    } else {
        if (style == LAYER) {
            float sum = 0;
            over<N, DEEP>(columns, [&](int k, i64 column) {
                Several<N> values = line.get(k, column);
                EACH sum += values.at[i];
            });
            center = blockSum(sum, room[0]) / columns;
        }
        float squares = 0;
        over<N, DEEP>(columns, [&](int k, i64 column) {
            Several<N> values = line.get(k, column);
            EACH {
                float away = values.at[i] - center;
                squares = fmaf(away, away, squares);
            }
        });
        inverse = 1 / sqrtf(blockSum(squares, room[1]) / columns + (float)epsilon);
        if (threadIdx.x == 0 && rstd.data) *rstd.at(row) = inverse;
        if (threadIdx.x == 0 && mean.data) *mean.at(row) = center;
    }
    if (!y.data) return;
    over<N, DEEP>(columns, [&](int k, i64 column) {
        Several<N> factor = load<N>(weight.at(0, column)), made = line.get(k, column);
        EACH {
            float normed = (made.at[i] - center) * inverse;
            if (style == RMS) normed = rounded<T>(normed);
            made.at[i] = normed * (style == GEMMA ? 1 + factor.at[i] : factor.at[i]);
        }
        if (bias.data) {
            Several<N> more = load<N>(bias.at(0, column));
            EACH made.at[i] += more.at[i];
        }
        if (add.data) {
            Several<N> more = load<N>(add.at(row, column));
            EACH made.at[i] = rounded<T>(made.at[i]) + more.at[i];
        }
        store<N>(y.at(row, column), made);
    });
}

#define KERNEL(NAME, T)                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(1024) NAME(Matrix<T> x, Matrix<T> weight, Matrix<T> bias, Matrix<T> add, Matrix<T> y,     \
                                   Matrix<float> rstd, Matrix<float> mean, i64 columns, i64 style, double epsilon, i64 again) {           \
        if (x.wide() && weight.wide() && bias.wide() && add.wide() && y.wide() && columns % 8 == 0 && columns <= LONGEST)                                     \
            norm<T, 8>(x, weight, bias, add, y, rstd, mean, columns, style, epsilon, again);                                           \
        else                                                                                                                              \
            norm<T, 1>(x, weight, bias, add, y, rstd, mean, columns, style, epsilon, again);                                          \
    }
KERNEL(norm_bf16, bf16)
KERNEL(norm_f32, float)
