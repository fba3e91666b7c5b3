#include "activation.h"

// gate: y = f(gate)·up, f(gate) rounded as a tensor of its own (LlamaMLP).
// gate_backward: the gradients of both, each rounded once. Outputs may lie where
// inputs do: a thread reads its eight before it writes them.
template <class T, bool WIDE> __device__ void gate(Matrix<T> gate, Matrix<T> up, Matrix<T> y, const Spot &spot, i64 columns, i64 kind) {
    i64 left = columns - spot.column;
    Eight values = load<WIDE>(gate.at(spot.row, spot.column), left), factor = load<WIDE>(up.at(spot.row, spot.column), left);
    EIGHT values.at[i] = rounded<T>(activated<T, WIDE>(kind, values.at[i])) * factor.at[i];
    store<WIDE>(y.at(spot.row, spot.column), left, values);
}

template <class T, bool WIDE>
__device__ void gateBack(Matrix<T> gate, Matrix<T> up, Matrix<T> dy, Matrix<T> dgate, Matrix<T> dup, const Spot &spot, i64 columns, i64 kind) {
    i64 left = columns - spot.column;
    Eight x = load<WIDE>(gate.at(spot.row, spot.column), left), factor = load<WIDE>(up.at(spot.row, spot.column), left);
    Eight gradient = load<WIDE>(dy.at(spot.row, spot.column), left), other;
    EIGHT {
        other.at[i] = gradient.at[i] * activated<T, WIDE>(kind, x.at[i]);
        x.at[i] = gradient.at[i] * factor.at[i] * slope<T, WIDE>(kind, x.at[i]);
    }
    store<WIDE>(dgate.at(spot.row, spot.column), left, x);
    store<WIDE>(dup.at(spot.row, spot.column), left, other);
}

#define KERNELS(NAME, BACK, T)                                                                                                      \
    extern "C" __global__ void NAME(Matrix<T> x, Matrix<T> up, Matrix<T> y, i64 rows, i64 columns, i64 kind) {                      \
        Spot spot(rows, columns);                                                                                                   \
        if (!spot.there) return;                                                                                                    \
        if (x.wide() && up.wide() && y.wide() && columns % 8 == 0)                                                                  \
            gate<T, true>(x, up, y, spot, columns, kind);                                                                           \
        else                                                                                                                        \
            gate<T, false>(x, up, y, spot, columns, kind);                                                                          \
    }                                                                                                                               \
    extern "C" __global__ void BACK(Matrix<T> x, Matrix<T> up, Matrix<T> dy, Matrix<T> dgate, Matrix<T> dup, i64 rows, i64 columns, \
                                    i64 kind) {                                                                                     \
        Spot spot(rows, columns);                                                                                                   \
        if (!spot.there) return;                                                                                                    \
        if (x.wide() && up.wide() && dy.wide() && dgate.wide() && dup.wide() && columns % 8 == 0)                                   \
            gateBack<T, true>(x, up, dy, dgate, dup, spot, columns, kind);                                                          \
        else                                                                                                                        \
            gateBack<T, false>(x, up, dy, dgate, dup, spot, columns, kind);                                                         \
    }
KERNELS(gate_bf16, gate_backward_bf16, bf16)
KERNELS(gate_f32, gate_backward_f32, float)
