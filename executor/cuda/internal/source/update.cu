#include "common.h"

// Uses is an argument: the gradients of all uses of a tied weight in module
// order, or the one there is. Their sum is the gradient, in fp32.
template <class T> struct Uses {
    i64 count;
    T *data[15];
    i64 stride;
};

template <class T, int N> __device__ Several<N> gradientOf(const Uses<T> &uses, i64 row, i64 column) {
    Several<N> sum = load<N>(uses.data[0] + row * uses.stride + column);
    _Pragma("unroll 1") for (int use = 1; use < uses.count; use++) {
        Several<N> more = load<N>(uses.data[use] + row * uses.stride + column);
        EACH sum.at[i] += more.at[i];
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
template <class T, int N> __device__ float squareOf(const Uses<T> &uses, unsigned index, unsigned each, i64 columns) {
    i64 row = index / each, column = (i64)(index % each) * 8, end = min(column + 8, columns);
    float sum = 0;
    _Pragma("unroll 1") for (; column < end; column += N) {
        Several<N> values = gradientOf<T, N>(uses, row, column);
        EACH sum = fmaf(values.at[i], values.at[i], sum);
    }
    return sum;
}

template <class T> __device__ void square(const Uses<T> &uses, double *parts, float *y, i64 rows, i64 columns) {
    __shared__ double room[32];
    unsigned each = (unsigned)((columns + 7) / 8), count = (unsigned)rows * each, step = gridDim.x * 256, index = blockIdx.x * 256 + threadIdx.x;
    bool rowsWide = wide(uses) && columns % 8 == 0, dense = uses.stride == columns; // then no row has to be found
    double sum = 0;
    if (rowsWide && uses.count == 1) {
        for (; index < count; index += 4 * step) {
            Held<T, 8> ahead[4] = {};
            _Pragma("unroll") for (int j = 0; j < 4; j++)
                if (unsigned at = index + j * step; at < count) ahead[j].read(uses.data[0] + (dense ? (i64)at * 8 : at / each * uses.stride + at % each * 8));
            _Pragma("unroll") for (int j = 0; j < 4; j++) {
                Several<8> values = ahead[j].get();
                float eight = 0;
                _Pragma("unroll") for (int i = 0; i < 8; i++) eight = fmaf(values.at[i], values.at[i], eight);
                sum += eight;
            }
        }
    } else {
        _Pragma("unroll 1") for (; index < count; index += step) sum += rowsWide ? squareOf<T, 8>(uses, index, each, columns) : squareOf<T, 1>(uses, index, each, columns);
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
    return scale > 1 ? 1 : scale; // a NaN norm makes a NaN
}

// odd is set once an update wrote a NaN or an infinity: only then kernel finite reads weights.
__device__ unsigned odd;

// narrowest is the least number that is infinite as a weight.
__device__ inline float narrowest(float) { return __int_as_float(0x7f800000); }
__device__ inline float narrowest(bf16) { return __int_as_float(0x7f7f8000); }

// Updated is where a parameter's value is kept: in fp32 (a master), or it is the
// weight. M is the type of the states too.
template <class M, class W, int N> struct Updated {
    const Matrix<M> &master;
    const Matrix<W> &weight;
    i64 row, column;
    __device__ Several<N> read() const { return master.data ? load<N>(master.at(row, column)) : load<N>(weight.at(row, column)); }
    __device__ void write(const Several<N> &values) const {
        if (master.data) store<N>(master.at(row, column), values);
        store<N>(weight.at(row, column), values);
        bool finite = true;
        EACH finite &= fabsf(values.at[i]) < narrowest(W{});
        if (!finite) odd = 1;
    }
};

#define SQUARE(NAME, T)                                                                                                                  \
    extern "C" __global__ void NAME(const __grid_constant__ Uses<T> x, double *parts, float *y, i64 rows, i64 columns) {                 \
        square(x, parts, y, rows, columns);                                                                                              \
    }
SQUARE(square_bf16, bf16)
SQUARE(square_f32, float)

// adamw is torch.optim.AdamW to the bit as adamw.py: _single_tensor_adamw has
// it: sums with a product are rounded once where ATen's vectors do (lerp_,
// addcmul_, but not addcdiv_).
#define ADAMW(NAME, G, M, W)                                                                                                                \
    extern "C" __global__ void NAME(const __grid_constant__ Uses<G> gradient, const float *total, Matrix<M> master, Matrix<W> weight,       \
                                    Matrix<M> mean, Matrix<M> square, i64 rows, i64 columns, const __grid_constant__ Settings settings) {   \
        eights(rows, columns, wide(gradient) && master.wide() && weight.wide() && mean.wide() && square.wide(), BODY                        \
            Updated<M, W, N> updated{master, weight, row, column};                                                                          \
            Several<N> gradients = gradientOf<G, N>(gradient, row, column), values = updated.read();                                        \
            Several<N> means = load<N>(mean.at(row, column)), squares = load<N>(square.at(row, column));                                    \
            float scale = clipped(settings, total), weight1 = (float)settings.weight1, weight2 = (float)settings.weight2;                   \
            EACH {                                                                                                                          \
                float g = gradients.at[i] * scale, value = values.at[i] * (float)settings.kept;                                             \
                means.at[i] = fmaf(weight1, g - means.at[i], means.at[i]);                                                                  \
                squares.at[i] = fmaf(weight2 * g, g, squares.at[i] * (float)settings.beta2);                                                \
                float divisor = sqrtf(squares.at[i]) / (float)settings.root + (float)settings.epsilon;                                      \
                values.at[i] = value - (float)settings.rate * means.at[i] / divisor;                                                        \
            }                                                                                                                               \
            store<N>(mean.at(row, column), means);                                                                                          \
            store<N>(square.at(row, column), squares);                                                                                      \
            updated.write(values);                                                                                                          \
        });                                                                                                                                 \
    }
ADAMW(adamw_bf16_bf16, bf16, bf16, bf16)
ADAMW(adamw_f32_bf16, float, float, bf16)
ADAMW(adamw_f32_f32, float, float, float)

// sgd is torch.optim.SGD without momentum: decay is part of the gradient.
#define SGD(NAME, G, M, W)                                                                                                                  \
    extern "C" __global__ void NAME(const __grid_constant__ Uses<G> gradient, const float *total, Matrix<M> master, Matrix<W> weight,       \
                                    i64 rows, i64 columns, const __grid_constant__ Settings settings) {                                     \
        eights(rows, columns, wide(gradient) && master.wide() && weight.wide(), BODY                                                        \
            Updated<M, W, N> updated{master, weight, row, column};                                                                          \
            Several<N> gradients = gradientOf<G, N>(gradient, row, column), values = updated.read();                                        \
            float scale = clipped(settings, total), rate = (float)settings.rate, decay = (float)settings.decay;                             \
            EACH values.at[i] = fmaf(-rate, fmaf(decay, values.at[i], gradients.at[i] * scale), values.at[i]);                              \
            updated.write(values);                                                                                                          \
        });                                                                                                                                 \
    }
SGD(sgd_bf16_bf16, bf16, bf16, bf16)
SGD(sgd_f32_bf16, float, float, bf16)
SGD(sgd_f32_f32, float, float, float)
