#include "activation.h"

// activate: y = f(x). activate_backward: dx = dy·f'(x). Each rounded once; y
// and dx may lie where what is read does.
template <class T, bool WIDE> __device__ void activate(Matrix<T> x, Matrix<T> y, const Spot &spot, i64 columns, i64 kind) {
    i64 left = columns - spot.column;
    Eight values = load<WIDE>(x.at(spot.row, spot.column), left);
    EIGHT values.at[i] = activated<T, WIDE>(kind, values.at[i]);
    store<WIDE>(y.at(spot.row, spot.column), left, values);
}

template <class T, bool WIDE> __device__ void activateBack(Matrix<T> x, Matrix<T> dy, Matrix<T> dx, const Spot &spot, i64 columns, i64 kind) {
    i64 left = columns - spot.column;
    Eight values = load<WIDE>(x.at(spot.row, spot.column), left), gradient = load<WIDE>(dy.at(spot.row, spot.column), left);
    EIGHT values.at[i] = gradient.at[i] * slope<T, WIDE>(kind, values.at[i]);
    store<WIDE>(dx.at(spot.row, spot.column), left, values);
}

#define KERNELS(NAME, BACK, T)                                                                                              \
    extern "C" __global__ void NAME(Matrix<T> x, Matrix<T> y, i64 rows, i64 columns, i64 kind) {                            \
        Spot spot(rows, columns);                                                                                           \
        if (!spot.there) return;                                                                                            \
        if (x.wide() && y.wide() && columns % 8 == 0)                                                                       \
            activate<T, true>(x, y, spot, columns, kind);                                                                   \
        else                                                                                                                \
            activate<T, false>(x, y, spot, columns, kind);                                                                  \
    }                                                                                                                       \
    extern "C" __global__ void BACK(Matrix<T> x, Matrix<T> dy, Matrix<T> dx, i64 rows, i64 columns, i64 kind) {             \
        Spot spot(rows, columns);                                                                                           \
        if (!spot.there) return;                                                                                            \
        if (x.wide() && dy.wide() && dx.wide() && columns % 8 == 0)                                                         \
            activateBack<T, true>(x, dy, dx, spot, columns, kind);                                                          \
        else                                                                                                                \
            activateBack<T, false>(x, dy, dx, spot, columns, kind);                                                         \
    }
KERNELS(activate_bf16, activate_backward_bf16, bf16)
KERNELS(activate_f32, activate_backward_f32, float)
