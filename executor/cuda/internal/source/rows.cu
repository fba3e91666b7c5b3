#include "common.h"

// pick: row i of y is row i·step + shift of x, rounded to y's type: cast and copy
// (1, 0), first (seq, 0), last (seq, seq − 1).
#define PICK(NAME, X, Y)                                                                                      \
    extern "C" __global__ void NAME(Matrix<X> x, Matrix<Y> y, i64 rows, i64 columns, i64 step, i64 shift) {   \
        eights(rows, columns, x.wide() && y.wide(), BODY store<N>(y.at(row, column), load<N>(x.at(row * step + shift, column))); }); \
    }
PICK(pick_bf16_bf16, bf16, bf16)
PICK(pick_f32_f32, float, float)
PICK(pick_f32_bf16, float, bf16)
PICK(pick_bf16_f32, bf16, float)

// column_sums: row i goes into part i modulo the parts (blockIdx.y). A block has
// 256 columns, which its 8 warps go down side by side, four rows on their way at
// once; the warps' are added in order.
template <class T, int N> __device__ void columnSums(Matrix<T> x, Matrix<float> sums, i64 rows, i64 columns, i64 parts) {
    __shared__ float room[8][256];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    _Pragma("unroll 1") for (int k = 0; k < 8; k += N) { // 8 columns of a lane, N at a time
        i64 column = (i64)blockIdx.x * 256 + lane * 8 + k, step = parts * 8;
        Several<N> sum = {};
        _Pragma("unroll 1") for (i64 base = blockIdx.y + parts * warp; base < rows && column < columns; base += 4 * step) {
            Held<T, N> ahead[4] = {};
            _Pragma("unroll") for (int j = 0; j < 4; j++) if (base + j * step < rows) ahead[j].read(x.at(base + j * step, column));
            _Pragma("unroll") for (int j = 0; j < 4; j++) {
                Several<N> more = ahead[j].get();
                EACH sum.at[i] += more.at[i];
            }
        }
        EACH room[warp][(k + i) * 32 + lane] = sum.at[i];
    }
    __syncthreads();
    i64 one = (i64)blockIdx.x * 256 + threadIdx.x;
    if (one >= columns) return;
    float total = 0;
    for (int i = 0; i < 8; i++) total += room[i][threadIdx.x % 8 * 32 + threadIdx.x / 8];
    *sums.at(blockIdx.y, one) = total;
}

#define COLUMN_SUMS(NAME, T)                                                                                   \
    extern "C" __global__ void NAME(Matrix<T> x, Matrix<float> sums, i64 rows, i64 columns, i64 parts) {       \
        if (x.wide() && columns % 8 == 0) columnSums<T, 8>(x, sums, rows, columns, parts);                     \
        else columnSums<T, 1>(x, sums, rows, columns, parts);                                                  \
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
