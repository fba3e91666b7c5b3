#include "common.h"

// Uses is an argument: the gradients of all uses of a tied weight in module
// order, or the one there is. Their sum is the gradient, in fp32.
template <class T> struct Uses {
    i64 count;
    T *data[15];
    i64 stride;
};

template <class T, bool WIDE> __device__ Eight gradientOf(const Uses<T> &uses, i64 row, i64 column, i64 columns) {
    Eight sum = load<WIDE>(uses.data[0] + row * uses.stride + column, columns - column);
    for (int use = 1; use < uses.count; use++) {
        Eight more = load<WIDE>(uses.data[use] + row * uses.stride + column, columns - column);
        EIGHT sum.at[i] += more.at[i];
    }
    return sum;
}

template <class T> __device__ bool wide(const Uses<T> &uses) {
    u64 all = uses.stride * sizeof(T);
    for (int use = 0; use < uses.count; use++) all |= (u64)uses.data[use];
    return all % 16 == 0;
}

// square is the squared norm of a gradient: each block adds up every gridDim-th
// stretch of 256 eights, four on their way at once, and eights in double;
// square_join adds the blocks' sums. A single block needs none.
template <class T, bool WIDE> __device__ void square(const Uses<T> &uses, double *parts, float *y, i64 rows, i64 columns) {
    __shared__ double room[32];
    unsigned each = (unsigned)((columns + 7) / 8), count = (unsigned)rows * each, step = gridDim.x * 256;
    double sum = 0;
    for (unsigned base = blockIdx.x * 256 + threadIdx.x; base < count; base += 4 * step) {
        Eight values[4] = {};
        _Pragma("unroll") for (int j = 0; j < 4; j++) {
            unsigned index = base + j * step;
            if (index < count) values[j] = gradientOf<T, WIDE>(uses, index / each, (i64)(index % each) * 8, columns);
        }
        _Pragma("unroll") for (int j = 0; j < 4; j++) {
            float eight = 0;
            EIGHT eight = fmaf(values[j].at[i], values[j].at[i], eight);
            sum += eight;
        }
    }
    sum = blockSum(sum, room);
    if (threadIdx.x > 0) return;
    if (gridDim.x == 1) *y = (float)sum;
    else parts[blockIdx.x] = sum;
}

extern "C" __global__ void square_join(const double *parts, float *y, i64 count) {
    __shared__ double room[32];
    double sum = 0;
    for (i64 i = threadIdx.x; i < count; i += 256) sum += parts[i];
    sum = blockSum(sum, room);
    if (threadIdx.x == 0) *y = (float)sum;
}

// Settings is an argument of the optimizers' kernels: constants that torch works
// out in double, and 0 for no clipping. sgd has rate and decay alone.
struct Settings { double kept, rate, weight1, beta2, weight2, root, epsilon, clip, decay; };

// clipped is what gradients are multiplied by (torch.nn.utils.clip_grad_norm_).
__device__ inline float clipped(const Settings &settings, const float *total) {
    if (settings.clip == 0) return 1;
    float scale = (float)settings.clip / (sqrtf(*total) + 1e-6f);
    return scale > 1 ? 1 : scale; // of a norm that is no number: no number
}

// Master is where a parameter's value is kept: in fp32 (mixed), or it is the
// weight. M is the type of the states too.
template <class G, class M, class W, bool WIDE> struct Updated {
    Matrix<M> master;
    Matrix<W> weight;
    Spot spot;
    i64 left;
    __device__ Eight read() const {
        if (master.data) return load<WIDE>(master.at(spot.row, spot.column), left);
        return load<WIDE>(weight.at(spot.row, spot.column), left);
    }
    __device__ void write(const Eight &values) const {
        if (master.data) store<WIDE>(master.at(spot.row, spot.column), left, values);
        store<WIDE>(weight.at(spot.row, spot.column), left, values);
    }
};

// adamw is torch.optim.AdamW to the bit as adamw.py: _single_tensor_adamw has
// it: sums with a product are rounded once where ATen's vectors do (lerp_,
// addcmul_, but not addcdiv_).
template <class G, class M, class W, bool WIDE>
__device__ void adamw(const Uses<G> &uses, const float *total, Matrix<M> master, Matrix<W> weight, Matrix<M> mean, Matrix<M> square, i64 rows, i64 columns,
                      const Settings &settings) {
    Spot spot(rows, columns);
    if (!spot.there) return;
    i64 left = columns - spot.column;
    Updated<G, M, W, WIDE> updated{master, weight, spot, left};
    Eight gradient = gradientOf<G, WIDE>(uses, spot.row, spot.column, columns), values = updated.read();
    Eight means = load<WIDE>(mean.at(spot.row, spot.column), left), squares = load<WIDE>(square.at(spot.row, spot.column), left);
    float scale = clipped(settings, total), weight1 = (float)settings.weight1, weight2 = (float)settings.weight2, beta2 = (float)settings.beta2;
    EIGHT {
        float g = gradient.at[i] * scale, value = values.at[i] * (float)settings.kept;
        means.at[i] = fmaf(weight1, g - means.at[i], means.at[i]);
        squares.at[i] = fmaf(weight2 * g, g, squares.at[i] * beta2);
        float divisor = sqrtf(squares.at[i]) / (float)settings.root + (float)settings.epsilon;
        values.at[i] = value - (float)settings.rate * means.at[i] / divisor;
    }
    store<WIDE>(mean.at(spot.row, spot.column), left, means);
    store<WIDE>(square.at(spot.row, spot.column), left, squares);
    updated.write(values);
}

// sgd is torch.optim.SGD without momentum: decay is part of the gradient.
template <class G, class M, class W, bool WIDE>
__device__ void sgd(const Uses<G> &uses, const float *total, Matrix<M> master, Matrix<W> weight, i64 rows, i64 columns, const Settings &settings) {
    Spot spot(rows, columns);
    if (!spot.there) return;
    Updated<G, M, W, WIDE> updated{master, weight, spot, columns - spot.column};
    Eight gradient = gradientOf<G, WIDE>(uses, spot.row, spot.column, columns), values = updated.read();
    float scale = clipped(settings, total), rate = (float)settings.rate, decay = (float)settings.decay;
    EIGHT values.at[i] = fmaf(-rate, fmaf(decay, values.at[i], gradient.at[i] * scale), values.at[i]);
    updated.write(values);
}

#define SQUARE(NAME, T)                                                                                                                  \
    extern "C" __global__ void NAME(const __grid_constant__ Uses<T> x, double *parts, float *y, i64 rows, i64 columns) {                 \
        if (wide(x) && columns % 8 == 0) square<T, true>(x, parts, y, rows, columns);                                                    \
        else square<T, false>(x, parts, y, rows, columns);                                                                               \
    }
SQUARE(square_bf16, bf16)
SQUARE(square_f32, float)

#define OPTIMIZERS(ADAMW, SGD, G, M, W)                                                                                                     \
    extern "C" __global__ void ADAMW(const __grid_constant__ Uses<G> gradient, const float *total, Matrix<M> master, Matrix<W> weight,      \
                                     Matrix<M> mean, Matrix<M> square, i64 rows, i64 columns, const __grid_constant__ Settings settings) {  \
        if (wide(gradient) && master.wide() && weight.wide() && mean.wide() && square.wide() && columns % 8 == 0)                           \
            adamw<G, M, W, true>(gradient, total, master, weight, mean, square, rows, columns, settings);                                   \
        else                                                                                                                                \
            adamw<G, M, W, false>(gradient, total, master, weight, mean, square, rows, columns, settings);                                  \
    }                                                                                                                                       \
    extern "C" __global__ void SGD(const __grid_constant__ Uses<G> gradient, const float *total, Matrix<M> master, Matrix<W> weight,        \
                                   i64 rows, i64 columns, const __grid_constant__ Settings settings) {                                      \
        if (wide(gradient) && master.wide() && weight.wide() && columns % 8 == 0)                                                           \
            sgd<G, M, W, true>(gradient, total, master, weight, rows, columns, settings);                                                   \
        else                                                                                                                                \
            sgd<G, M, W, false>(gradient, total, master, weight, rows, columns, settings);                                                  \
    }
OPTIMIZERS(adamw_bf16_bf16, sgd_bf16_bf16, bf16, bf16, bf16)
OPTIMIZERS(adamw_f32_bf16, sgd_f32_bf16, float, float, bf16)
OPTIMIZERS(adamw_f32_f32, sgd_f32_f32, float, float, float)
