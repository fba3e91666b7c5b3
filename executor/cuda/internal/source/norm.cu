#include "common.h"

// norm: a block a row, which it holds in registers. RMSNorm is rounded before it
// is multiplied by the weight and behind it (LlamaRMSNorm), Gemma's and
// LayerNorm once; a branch's norm is rounded before the stream is added to it.
// Without y it is for the 1/σ and the mean of rows alone; again: these are
// there (norm_again). Reads and writes every value once.
enum { RMS, GEMMA, LAYER };

template <class T, bool WIDE>
__device__ void norm(Matrix<T> x, Matrix<T> weight, Matrix<T> bias, Matrix<T> add, Matrix<T> y, Matrix<float> rstd, Matrix<float> mean,
                     i64 columns, i64 style, double epsilon, i64 again) {
    __shared__ float room[2][32];
    i64 row = blockIdx.x;
    Line<T, WIDE> line(x.at(row), columns);
    float center = 0, inverse;
    if (again) {
        inverse = *rstd.at(row);
        if (mean.data) center = *mean.at(row);
    } else {
        if (style == LAYER) {
            float sum = 0;
            over<WIDE>(columns, [&](int k, i64 column) {
                Eight values = line.get(k, column);
                EIGHT sum += values.at[i];
            });
            center = blockSum(sum, room[0]) / columns;
        }
        float squares = 0;
        over<WIDE>(columns, [&](int k, i64 column) {
            Eight values = line.get(k, column);
            EIGHT {
                float away = WIDE || i < columns - column ? values.at[i] - center : 0;
                squares = fmaf(away, away, squares);
            }
        });
        inverse = 1 / sqrtf(blockSum(squares, room[1]) / columns + (float)epsilon);
        if (threadIdx.x == 0 && rstd.data) *rstd.at(row) = inverse;
        if (threadIdx.x == 0 && mean.data) *mean.at(row) = center;
    }
    if (!y.data) return;
    over<WIDE>(columns, [&](int k, i64 column) {
        i64 left = columns - column;
        Eight factor = load<WIDE>(weight.at(0, column), left), made = line.get(k, column);
        EIGHT {
            float normed = (made.at[i] - center) * inverse;
            if (style == RMS) normed = rounded<T>(normed);
            made.at[i] = normed * (style == GEMMA ? 1 + factor.at[i] : factor.at[i]);
        }
        if (bias.data) {
            Eight more = load<WIDE>(bias.at(0, column), left);
            EIGHT made.at[i] += more.at[i];
        }
        if (add.data) {
            Eight more = load<WIDE>(add.at(row, column), left);
            EIGHT made.at[i] = rounded<T>(made.at[i]) + more.at[i];
        }
        store<WIDE>(y.at(row, column), left, made);
    });
}

#define KERNEL(NAME, T)                                                                                                                   \
    extern "C" __global__ void __launch_bounds__(1024) NAME(Matrix<T> x, Matrix<T> weight, Matrix<T> bias, Matrix<T> add, Matrix<T> y,     \
                                   Matrix<float> rstd, Matrix<float> mean, i64 columns, i64 style, double epsilon, i64 again) {           \
        if (x.wide() && weight.wide() && bias.wide() && add.wide() && y.wide() && columns % 8 == 0 && columns <= LONGEST)                                     \
            norm<T, true>(x, weight, bias, add, y, rstd, mean, columns, style, epsilon, again);                                           \
        else                                                                                                                              \
            norm<T, false>(x, weight, bias, add, y, rstd, mean, columns, style, epsilon, again);                                          \
    }
KERNEL(norm_bf16, bf16)
KERNEL(norm_f32, float)
