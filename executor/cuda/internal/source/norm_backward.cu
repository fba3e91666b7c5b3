#include "common.h"

// addTeams adds the sums of the other teams to those of the first, in order.
// gather has room for those of all.
__device__ inline void addTeams(Eight &sums, float *gather, int team, int teams, int threads, int own) {
    __syncthreads();
    EIGHT gather[(team * 8 + i) * threads + own] = sums.at[i];
    __syncthreads();
    for (int other = 1; team == 0 && other < teams; other++) EIGHT sums.at[i] += gather[(other * 8 + i) * threads + own];
}

// norm_backward: the gradient of a norm's input (+ add), with n the normed row
// and g the gradient of it rstd·(g − mean(g) − n·mean(g·n)), without the first
// mean but in LayerNorm; and sums for those of weight and bias. Row i belongs to
// part i modulo the parts; a part is a block, in which teams of threads go
// through its rows side by side. A thread keeps the sums of its columns in
// registers, and the teams' are added in their order. A thread has eight values
// of a row, which has at most 8192. There are biases in LAYER alone: without
// them, and in bf16, there are registers for the next row, which comes while
// this one is worked on.
template <class T, bool WIDE, bool LAYER>
__device__ void back(Matrix<T> dy, Matrix<T> x, Matrix<float> rstd, Matrix<float> mean, Matrix<T> weight, Matrix<T> add, Matrix<T> dx,
                     Matrix<float> sums, Matrix<float> biases, i64 rows, i64 columns, i64 style, i64 parts, float2 (*room)[32], float *gather) {
    const bool AHEAD = sizeof(T) == 2 && WIDE && !LAYER;
    int threads = (int)min((columns + 255) / 256 * 32, (i64)1024), teams = blockDim.x / threads;
    int team = threadIdx.x / threads, own = threadIdx.x % threads, warps = threads / 32, first = team * warps;
    i64 column = own * 8, left = columns - column;
    bool there = left > 0;
    Held<T, WIDE> factors = {}, now[3] = {}, next[3] = {};
    Eight weights = {}, shifts = {};
    if (there) factors.read(weight.at(0, column), left);
    float more = style == 1 ? 1 : 0;
    auto fetch = [&](i64 row) {
        if (!there || row >= rows) return;
        next[0].read(x.at(row, column), left);
        next[1].read(dy.at(row, column), left);
        if (add.data) next[2].read(add.at(row, column), left);
    };
    int turn = 0, step = (int)parts * teams, row = blockIdx.x + (int)parts * team;
    if (AHEAD) fetch(row);
    for (; row < rows; row += step, turn ^= 1) {
        if (!AHEAD) fetch(row);
        now[0] = next[0], now[1] = next[1], now[2] = next[2];
        if (AHEAD) fetch(row + step);
        float inverse = *rstd.at(row), center = mean.data ? *mean.at(row) : 0;
        float2 total = make_float2(0, 0);
        Eight n = now[0].get(), g = now[1].get(), factor = factors.get();
        EIGHT {
            float normed = (n.at[i] - center) * inverse, scaled = g.at[i] * (factor.at[i] + more);
            weights.at[i] = fmaf(g.at[i], normed, weights.at[i]);
            if (LAYER) shifts.at[i] += g.at[i], total.x += scaled;
            total.y = fmaf(scaled, normed, total.y);
        }
        total.y = warpSum(total.y);
        if (LAYER) total.x = warpSum(total.x);
        if (warps > 1) { // teams meet alone: other teams may have no row left
            if (threadIdx.x % 32 == 0) room[turn][threadIdx.x / 32] = total;
            asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
            int lane = threadIdx.x % 32;
            total = lane < warps ? room[turn][first + lane] : make_float2(0, 0);
            total.y = warpSum(total.y);
            if (LAYER) total.x = warpSum(total.x);
        }
        float along = LAYER ? total.x / columns : 0, product = total.y / columns;
        now[0].keep(), now[1].keep(), factors.keep();
        n = now[0].get(), g = now[1].get(), factor = factors.get(); // again: they take half the room as they lie
        Eight stream = {};
        if (add.data) stream = now[2].get();
        EIGHT {
            float normed = (n.at[i] - center) * inverse, scaled = g.at[i] * (factor.at[i] + more);
            n.at[i] = inverse * (scaled - along - normed * product) + stream.at[i];
        }
        if (there) store<WIDE>(dx.at(row, column), left, n);
    }
    addTeams(weights, gather, team, teams, threads, own);
    if (team == 0) store<false>(sums.at(blockIdx.x, column), left, weights);
    if (!LAYER) return;
    addTeams(shifts, gather, team, teams, threads, own);
    if (team == 0) store<false>(biases.at(blockIdx.x, column), left, shifts);
}

// longBack is the same of rows that are longer: what is read is read again, and
// sums are added up where they go, each by its thread.
template <class T, bool WIDE>
__device__ void longBack(Matrix<T> dy, Matrix<T> x, Matrix<float> rstd, Matrix<float> mean, Matrix<T> weight, Matrix<T> add, Matrix<T> dx,
                         Matrix<float> sums, Matrix<float> biases, i64 rows, i64 columns, i64 style, i64 parts, float2 (*room)[32]) {
    int turn = 0;
    for (i64 row = blockIdx.x; row < rows; row += parts, turn ^= 1) {
        float inverse = *rstd.at(row), center = mean.data ? *mean.at(row) : 0, along = 0, product = 0;
        for (int again = 0; again < 2; again++) {
            for (i64 column = threadIdx.x * 8; column < columns; column += blockDim.x * 8) {
                i64 left = columns - column;
                Eight n = load<WIDE>(x.at(row, column), left), g = load<WIDE>(dy.at(row, column), left), factor = load<WIDE>(weight.at(0, column), left);
                EIGHT n.at[i] = (n.at[i] - center) * inverse;
                if (style == 1) EIGHT factor.at[i] += 1;
                if (again) {
                    Eight made = {};
                    if (add.data) made = load<WIDE>(add.at(row, column), left);
                    EIGHT made.at[i] = inverse * (g.at[i] * factor.at[i] - along - n.at[i] * product) + made.at[i];
                    store<WIDE>(dx.at(row, column), left, made);
                    continue;
                }
                Eight weights = {}, shifts = {};
                if (row >= parts) weights = load<false>(sums.at(blockIdx.x, column), left);
                if (row >= parts && biases.data) shifts = load<false>(biases.at(blockIdx.x, column), left);
                EIGHT {
                    weights.at[i] = fmaf(g.at[i], n.at[i], weights.at[i]), shifts.at[i] += g.at[i];
                    along += g.at[i] * factor.at[i];
                    product = fmaf(g.at[i] * factor.at[i], n.at[i], product);
                }
                store<false>(sums.at(blockIdx.x, column), left, weights);
                if (biases.data) store<false>(biases.at(blockIdx.x, column), left, shifts);
            }
            if (again) continue;
            along = blockSum(along, (float *)room[turn]) / columns, product = blockSum(product, (float *)room[turn] + 32) / columns;
            if (style != 2) along = 0;
        }
    }
}

#define ARGUMENTS dy, x, rstd, mean, weight, add, dx, sums, biases, rows, columns, style, parts, room, gather
#define LONG_ARGUMENTS dy, x, rstd, mean, weight, add, dx, sums, biases, rows, columns, style, parts, room
#define KERNEL(NAME, T)                                                                                                        \
    extern "C" __global__ void __launch_bounds__(1024, 1)                                                                      \
        NAME(Matrix<T> dy, Matrix<T> x, Matrix<float> rstd, Matrix<float> mean, Matrix<T> weight, Matrix<T> add, Matrix<T> dx, \
             Matrix<float> sums, Matrix<float> biases, i64 rows, i64 columns, i64 style, i64 parts) {                          \
        __shared__ float2 room[2][32];                                                                                         \
        __shared__ float gather[8192];                                                                                         \
        bool wide = dy.wide() && x.wide() && weight.wide() && add.wide() && dx.wide() && columns % 8 == 0;                     \
        if (columns > 8192 && wide)                                                                                            \
            longBack<T, true>(LONG_ARGUMENTS);                                                                                 \
        else if (columns > 8192)                                                                                               \
            longBack<T, false>(LONG_ARGUMENTS);                                                                                \
        else if (wide && style == 2)                                                                                           \
            back<T, true, true>(ARGUMENTS);                                                                                    \
        else if (wide)                                                                                                         \
            back<T, true, false>(ARGUMENTS);                                                                                   \
        else if (style == 2)                                                                                                   \
            back<T, false, true>(ARGUMENTS);                                                                                   \
        else                                                                                                                   \
            back<T, false, false>(ARGUMENTS);                                                                                  \
    }
KERNEL(norm_backward_bf16, bf16)
KERNEL(norm_backward_f32, float)
