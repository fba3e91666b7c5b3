#include "activation.h"

// activate: y = f(x). activate_backward: dx = dy·f'(x). Each rounded once; y
// and dx may lie where what is read does.
#define KERNELS(NAME, BACK, T)                                                                                     \
    extern "C" __global__ void NAME(Matrix<T> x, Matrix<T> y, i64 rows, i64 columns, i64 kind) {                   \
        eights(rows, columns, x.wide() && y.wide(), BODY                                                           \
            Several<N> values = load<N>(x.at(row, column));                                                        \
            EACH values.at[i] = activated<T>(kind, values.at[i]);                                                  \
            store<N>(y.at(row, column), values);                                                                   \
        });                                                                                                        \
    }                                                                                                              \
    extern "C" __global__ void BACK(Matrix<T> x, Matrix<T> dy, Matrix<T> dx, i64 rows, i64 columns, i64 kind) {    \
        eights(rows, columns, x.wide() && dy.wide() && dx.wide(), BODY                                             \
            Several<N> values = load<N>(x.at(row, column)), gradient = load<N>(dy.at(row, column));                \
            EACH values.at[i] = gradient.at[i] * slope<T>(kind, values.at[i]);                                     \
            store<N>(dx.at(row, column), values);                                                                  \
        });                                                                                                        \
    }
KERNELS(activate_bf16, activate_backward_bf16, bf16)
KERNELS(activate_f32, activate_backward_f32, float)
