#include "activation.h"

// gate: y = f(gate)·up, f(gate) rounded as a tensor of its own (LlamaMLP).
// gate_backward: the gradients of both, each rounded once. Outputs may lie where
// inputs do: a thread reads its eight before it writes them.
#define KERNELS(NAME, BACK, T)                                                                                                      \
    extern "C" __global__ void NAME(Matrix<T> x, Matrix<T> up, Matrix<T> y, i64 rows, i64 columns, i64 kind) {                      \
        eights(rows, columns, x.wide() && up.wide() && y.wide(), BODY                                                               \
            Several<N> values = load<N>(x.at(row, column)), factor = load<N>(up.at(row, column));                                   \
            EACH values.at[i] = rounded<T>(activated<T>(kind, values.at[i])) * factor.at[i];                                        \
            store<N>(y.at(row, column), values);                                                                                    \
        });                                                                                                                         \
    }                                                                                                                               \
    extern "C" __global__ void BACK(Matrix<T> gate, Matrix<T> up, Matrix<T> dy, Matrix<T> dgate, Matrix<T> dup, i64 rows,           \
                                    i64 columns, i64 kind) {                                                                        \
        eights(rows, columns, gate.wide() && up.wide() && dy.wide() && dgate.wide() && dup.wide(), BODY                             \
            Several<N> x = load<N>(gate.at(row, column)), factor = load<N>(up.at(row, column));                                     \
            Several<N> gradient = load<N>(dy.at(row, column)), other;                                                               \
            EACH {                                                                                                                  \
                other.at[i] = gradient.at[i] * activated<T>(kind, x.at[i]);                                                         \
                x.at[i] = gradient.at[i] * factor.at[i] * slope<T>(kind, x.at[i]);                                                  \
            }                                                                                                                       \
            store<N>(dgate.at(row, column), x);                                                                                     \
            store<N>(dup.at(row, column), other);                                                                                   \
        });                                                                                                                         \
    }
KERNELS(gate_bf16, gate_backward_bf16, bf16)
KERNELS(gate_f32, gate_backward_f32, float)
