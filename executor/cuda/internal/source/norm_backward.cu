#include "common.h"

// norm_backward: the gradient of a norm's input (+ add), with n the normed row
// and g the gradient of it rstd·(g − mean(g) − n·mean(g·n)), without the first
// mean but in LayerNorm; and sums for that of the weight (column_sums makes those
// of the bias). Row i belongs to part i modulo the parts; a part is a block.
enum { RMS, GEMMA, LAYER };

// Back is what a part has to do.
template <class T> struct Back {
    Matrix<T> dy, x;
    Matrix<float> rstd, mean;
    Matrix<T> weight, add, dx;
    Matrix<float> sums;
    i64 rows, columns, style, parts;
};

struct Room { float2 sums[2][32]; float gather[8192]; };

// teams: rows that are wide and have at most 8192 values. Teams of threads go
// through the rows of a part side by side; a thread has eight values of a row, and
// keeps the sums of its columns in registers; the teams' are added in their order.
template <class T, bool LAYERS> __device__ void teams(const Back<T> &task, Room &room) {
    const int N = 8;
    int threads = (int)min((task.columns + 255) / 256 * 32, (i64)1024), teams = blockDim.x / threads;
    int team = threadIdx.x / threads, own = threadIdx.x % threads, warps = threads / 32, first = team * warps, lane = threadIdx.x % 32;
    i64 column = own * 8;
    bool there = column < task.columns;
    Held<T, 8> factors = {}, held[3] = {};
    Several<8> weights = {};
    if (there) factors.read(task.weight.at(0, column));
    float more = task.style == GEMMA ? 1 : 0;
    int turn = 0, step = (int)task.parts * teams;
    for (int row = blockIdx.x + (int)task.parts * team; row < task.rows; row += step, turn ^= 1) {
        if (there) {
            held[0].read(task.x.at(row, column));
            held[1].read(task.dy.at(row, column));
            if (task.add.data) held[2].read(task.add.at(row, column));
        }
        float inverse = *task.rstd.at(row), center = LAYERS ? *task.mean.at(row) : 0;
        float2 total = make_float2(0, 0); // of g, and of g·n
        Several<8> n = held[0].get(), g = held[1].get(), factor = factors.get();
        EACH {
            float away = n.at[i] - center, scaled = g.at[i] * (factor.at[i] + more);
            weights.at[i] = fmaf(g.at[i] * inverse, away, weights.at[i]);
            if (LAYERS) total.x += scaled;
            total.y = fmaf(scaled, away, total.y);
        }
        total.y = warpSum(total.y);
        if (LAYERS) total.x = warpSum(total.x);
        if (warps > 1) { // teams meet alone: other teams may have no row left
            if (lane == 0) room.sums[turn][threadIdx.x / 32] = total;
            asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
            total = lane < warps ? room.sums[turn][first + lane] : make_float2(0, 0);
            total.y = warpSum(total.y);
            if (LAYERS) total.x = warpSum(total.x);
        }
        // rstd·(g − mean(g) − n·mean(g·n)) with n = rstd·away
        float along = LAYERS ? total.x / task.columns * inverse : 0, product = total.y / task.columns * inverse * inverse * inverse;
        held[0].keep(), held[1].keep(), factors.keep();
        n = held[0].get(), g = held[1].get(), factor = factors.get(); // again: they take half the room as they lie
        Several<8> stream = {};
        if (task.add.data) stream = held[2].get();
        EACH {
            float scaled = g.at[i] * (factor.at[i] + more);
            n.at[i] = fmaf(scaled, inverse, fmaf(center - n.at[i], product, stream.at[i] - along));
        }
        if (there) store<8>(task.dx.at(row, column), n);
    }
    EACH room.gather[(team * 8 + i) * threads + own] = weights.at[i];
    __syncthreads();
    if (team > 0 || !there) return;
    for (int other = 1; other < teams; other++) EACH weights.at[i] += room.gather[(other * 8 + i) * threads + own];
    EACH *task.sums.at(blockIdx.x, column + i) = weights.at[i];
}

// strides is the same of rows that are longer or not wide: what is read is read
// again, and sums are added up where they go, each by its thread.
template <class T, int N> __device__ void strides(const Back<T> &task, Room &room) {
    int turn = 0;
    for (i64 row = blockIdx.x; row < task.rows; row += task.parts, turn ^= 1) {
        float inverse = *task.rstd.at(row), center = task.mean.data ? *task.mean.at(row) : 0, along = 0, product = 0;
        _Pragma("unroll 1") for (int again = 0; again < 2; again++) {
            _Pragma("unroll 1") for (i64 column = threadIdx.x * N; column < task.columns; column += blockDim.x * N) {
                Several<N> n = load<N>(task.x.at(row, column)), g = load<N>(task.dy.at(row, column)), factor = load<N>(task.weight.at(0, column));
                EACH n.at[i] = (n.at[i] - center) * inverse;
                if (task.style == GEMMA) EACH factor.at[i] += 1;
                if (again) {
                    Several<N> made = {};
                    if (task.add.data) made = load<N>(task.add.at(row, column));
                    EACH made.at[i] = inverse * (g.at[i] * factor.at[i] - along - n.at[i] * product) + made.at[i];
                    store<N>(task.dx.at(row, column), made);
                    continue;
                }
                EACH {
                    float *sum = task.sums.at(blockIdx.x, column + i), before = row < task.parts ? 0 : *sum;
                    *sum = fmaf(g.at[i], n.at[i], before);
                    along += g.at[i] * factor.at[i];
                    product = fmaf(g.at[i] * factor.at[i], n.at[i], product);
                }
            }
            if (again) continue;
            along = blockSum(along, (float *)room.sums[turn]) / task.columns, product = blockSum(product, (float *)room.sums[turn] + 32) / task.columns;
            if (task.style != LAYER) along = 0;
        }
    }
}

#define KERNEL(NAME, T)                                                                                                        \
    extern "C" __global__ void __launch_bounds__(1024, 1)                                                                      \
        NAME(Matrix<T> dy, Matrix<T> x, Matrix<float> rstd, Matrix<float> mean, Matrix<T> weight, Matrix<T> add, Matrix<T> dx, \
             Matrix<float> sums, i64 rows, i64 columns, i64 style, i64 parts) {                                                \
        __shared__ Room room;                                                                                                  \
        Back<T> task{dy, x, rstd, mean, weight, add, dx, sums, rows, columns, style, parts};                                   \
        bool wide = dy.wide() && x.wide() && weight.wide() && add.wide() && dx.wide() && columns % 8 == 0;                     \
        if (!wide) strides<T, 1>(task, room);                                                                                  \
        else if (columns > 8192) strides<T, 8>(task, room);                                                                    \
        else if (style == LAYER) teams<T, true>(task, room);                                                                   \
        else teams<T, false>(task, room);                                                                                      \
    }
KERNEL(norm_backward_bf16, bf16)
KERNEL(norm_backward_f32, float)
