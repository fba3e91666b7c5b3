#include "common.h"

// pick: row i of y is row i·step + shift of x, rounded to y's type: cast and copy
// (1, 0), first (seq, 0), last (seq, seq − 1).
template <class X, class Y, bool WIDE>
__device__ void pick(Matrix<X> x, Matrix<Y> y, const Spot &spot, i64 columns, i64 step, i64 shift) {
    store<WIDE>(y.at(spot.row, spot.column), columns - spot.column, load<WIDE>(x.at(spot.row * step + shift, spot.column), columns - spot.column));
}

#define PICK(NAME, X, Y)                                                                                             \
    extern "C" __global__ void NAME(Matrix<X> x, Matrix<Y> y, i64 rows, i64 columns, i64 step, i64 shift) {           \
        Spot spot(rows, columns);                                                                                    \
        if (!spot.there) return;                                                                                     \
        if (x.wide() && y.wide() && columns % 8 == 0)                                                                \
            pick<X, Y, true>(x, y, spot, columns, step, shift);                                                      \
        else                                                                                                         \
            pick<X, Y, false>(x, y, spot, columns, step, shift);                                                     \
    }
PICK(pick_bf16_bf16, bf16, bf16)
PICK(pick_f32_f32, float, float)
PICK(pick_f32_bf16, float, bf16)
PICK(pick_bf16_f32, bf16, float)

// column_sums: row i goes into part i modulo the parts (blockIdx.y). A block has
// 256 columns, which its 8 warps go down side by side; theirs are added in order.
template <class T, bool WIDE> __device__ void columnSums(Matrix<T> x, Matrix<float> sums, i64 rows, i64 columns, i64 parts) {
    __shared__ float room[8][256];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64 column = (i64)blockIdx.x * 256 + lane * 8;
    Eight sum = {};
    if (column < columns)
        for (i64 row = blockIdx.y + parts * warp; row < rows; row += parts * 8) {
            Eight more = load<WIDE>(x.at(row, column), columns - column);
            EIGHT sum.at[i] += more.at[i];
        }
    EIGHT room[warp][i * 32 + lane] = sum.at[i];
    __syncthreads();
    i64 one = (i64)blockIdx.x * 256 + threadIdx.x;
    if (one >= columns) return;
    float total = 0;
    for (int i = 0; i < 8; i++) total += room[i][threadIdx.x % 8 * 32 + threadIdx.x / 8];
    *sums.at(blockIdx.y, one) = total;
}

#define COLUMN_SUMS(NAME, T)                                                                                   \
    extern "C" __global__ void NAME(Matrix<T> x, Matrix<float> sums, i64 rows, i64 columns, i64 parts) {       \
        if (x.wide() && columns % 8 == 0)                                                                      \
            columnSums<T, true>(x, sums, rows, columns, parts);                                                \
        else                                                                                                   \
            columnSums<T, false>(x, sums, rows, columns, parts);                                               \
    }
COLUMN_SUMS(column_sums_bf16, bf16)
COLUMN_SUMS(column_sums_f32, float)

// add_rows: d (+)= Σ rows of x, in their order.
template <class T> __device__ void addRows(Matrix<float> x, Matrix<T> d, i64 rows, i64 columns, i64 adds) {
    i64 column = (i64)blockIdx.x * 128 + threadIdx.x;
    if (column >= columns) return;
    double sum = 0;
    _Pragma("unroll 8") for (i64 row = 0; row < rows; row++) sum += *x.at(row, column);
    if (adds) sum += widen(*d.at(0, column));
    *d.at(0, column) = narrow<T>((float)sum);
}
extern "C" __global__ void add_rows_bf16(Matrix<float> x, Matrix<bf16> d, i64 rows, i64 columns, i64 adds) { addRows(x, d, rows, columns, adds); }
extern "C" __global__ void add_rows_f32(Matrix<float> x, Matrix<float> d, i64 rows, i64 columns, i64 adds) { addRows(x, d, rows, columns, adds); }

// nonfinite: *found = the least of what it was and row·columns + column of a
// value that is no number or infinite. Of integers the least is the same in any
// order.
template <class T, bool WIDE> __device__ void look(Matrix<T> x, u64 *found, const Spot &spot, i64 columns) {
    Eight values = load<WIDE>(x.at(spot.row, spot.column), columns - spot.column);
    EIGHT if (!(fabsf(values.at[i]) < __int_as_float(0x7f800000))) {
        atomicMin(found, (u64)(spot.row * columns + spot.column + i));
        return;
    }
}

#define NONFINITE(NAME, T)                                                                    \
    extern "C" __global__ void NAME(Matrix<T> x, u64 *found, i64 rows, i64 columns) {         \
        Spot spot(rows, columns);                                                             \
        if (!spot.there) return;                                                              \
        if (x.wide() && columns % 8 == 0)                                                     \
            look<T, true>(x, found, spot, columns);                                           \
        else                                                                                  \
            look<T, false>(x, found, spot, columns);                                          \
    }
NONFINITE(nonfinite_bf16, bf16)
NONFINITE(nonfinite_f32, float)
