#include "qknorm.h"

// qknorm_backward turns the gradients of q and k back and takes them through the
// norms, in place. Row i belongs to part i modulo the parts: a part is a block, of
// q (blockIdx.y 0) or of k; its lanes go through the heads of its rows, eight of a
// row at a time, whose angles are the same. Sums for the weight's gradient are added in
// an order that follows from sizes.
const int GROUP = 8, THREADS = 512, WARPS = THREADS / 32;

template <class T> struct Part {
    Matrix<T> x, weight, gradient;
    Matrix<float> sums;
    i64 rows, heads, dim, seq, past, gemma;
    double epsilon;
    i64 parts;
};

template <class T> __device__ void byHalves(const Part<T> &task, const Frequencies &turn, float (*room)[256]) {
    const int N = 8;
    i64 half = turn.half, groups = (task.heads + GROUP - 1) / GROUP, rows = (task.rows - blockIdx.x + task.parts - 1) / task.parts, items = rows * groups;
    int lanes = (int)task.dim / 16, own = threadIdx.x % lanes * 8, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Pair<T> factors;
    factors.read(task.weight.at(0, own), half);
    Several<8> left = {}, right = {}; // sums
    float more = task.gemma ? 1 : 0;
    _Pragma("unroll 1") for (i64 base = 0; base < items; base += THREADS / lanes) {
        i64 item = base + threadIdx.x / lanes, row = blockIdx.x + item / groups * task.parts, begin = item % groups * GROUP;
        float cosines[8], sines[8];
        _Pragma("unroll 1") for (int i = 0; i < 8; i++) {
            float2 both = item < items ? cosineAndSine((float)position(row, task.seq, task.past) * turn.inverse[own + i]) : make_float2(0, 0);
            _Pragma("unroll") for (int k = 0; k < 8; k++) // registers have no index
                if (k == i) cosines[k] = rounded<T>(both.x * (float)turn.factor), sines[k] = rounded<T>(both.y * (float)turn.factor);
        }
        _Pragma("unroll 1") for (i64 head = begin; head < begin + GROUP; head++) {
            bool there = item < items && head < task.heads;
            Pair<T> x = {}, gradient = {};
            T *to = task.gradient.at(row, head * task.dim + own);
            if (there) x.read(task.x.at(row, head * task.dim + own), half), gradient.read(to, half);
            Several<8> one = x.first.get(), two = x.second.get(), first = gradient.first.get(), second = gradient.second.get();
            Several<8> low = factors.first.get(), high = factors.second.get();
            float squares = 0, product = 0;
            EACH squares = fmaf(one.at[i], one.at[i], fmaf(two.at[i], two.at[i], squares));
            float inverse = 1 / sqrtf(sharedSum(squares, lanes) / task.dim + (float)task.epsilon);
            EACH {
                turned<T>(first.at[i], second.at[i], cosines[i], -sines[i]);
                one.at[i] *= inverse, two.at[i] *= inverse;
                left.at[i] = fmaf(first.at[i], one.at[i], left.at[i]), right.at[i] = fmaf(second.at[i], two.at[i], right.at[i]);
                first.at[i] *= low.at[i] + more, second.at[i] *= high.at[i] + more;
                product = fmaf(first.at[i], one.at[i], fmaf(second.at[i], two.at[i], product));
            }
            product = sharedSum(product, lanes) / task.dim;
            EACH first.at[i] = inverse * (first.at[i] - one.at[i] * product), second.at[i] = inverse * (second.at[i] - two.at[i] * product);
            if (!there) continue;
            store<8>(to, first);
            store<8>(to + half, second);
        }
    }
    for (int away = 16; away >= lanes; away /= 2)
        EACH left.at[i] += __shfl_xor_sync(~0u, left.at[i], away), right.at[i] += __shfl_xor_sync(~0u, right.at[i], away);
    if (lane < lanes) EACH room[warp][own + i] = left.at[i], room[warp][half + own + i] = right.at[i];
}

template <class T> __device__ void byPairs(const Part<T> &task, const Frequencies &turn, float (*room)[256]) {
    int warp = threadIdx.x / 32;
    float left[PAIRS] = {}, right[PAIRS] = {}, more = task.gemma ? 1 : 0; // sums
    _Pragma("unroll 1") for (i64 item = warp; blockIdx.x + item / task.heads * task.parts < task.rows; item += WARPS) {
        i64 row = blockIdx.x + item / task.heads * task.parts, head = item % task.heads;
        T *from = task.x.at(row, head * task.dim), *to = task.gradient.at(row, head * task.dim);
        float one[PAIRS], two[PAIRS], first[PAIRS], second[PAIRS], squares = 0, product = 0;
        OVER(p) {
            Places at(p, turn.half, task.dim);
            bool pair = at.second < task.dim;
            one[j] = widen(from[at.first]), two[j] = pair ? widen(from[at.second]) : 0;
            first[j] = widen(to[at.first]), second[j] = pair ? widen(to[at.second]) : 0;
            squares = fmaf(one[j], one[j], fmaf(two[j], two[j], squares));
        }
        float inverse = 1 / sqrtf(warpSum(squares) / task.dim + (float)task.epsilon);
        OVER(p) {
            Places at(p, turn.half, task.dim);
            if (p < turn.half) {
                float2 both = cosineAndSine((float)position(row, task.seq, task.past) * turn.inverse[p]);
                turned<T>(first[j], second[j], rounded<T>(both.x * (float)turn.factor), -rounded<T>(both.y * (float)turn.factor));
            }
            one[j] *= inverse, two[j] *= inverse;
            left[j] = fmaf(first[j], one[j], left[j]), right[j] = fmaf(second[j], two[j], right[j]);
            first[j] *= widen(*task.weight.at(0, at.first)) + more;
            second[j] *= at.second < task.dim ? widen(*task.weight.at(0, at.second)) + more : 0;
            product = fmaf(first[j], one[j], fmaf(second[j], two[j], product));
        }
        product = warpSum(product) / task.dim;
        OVER(p) {
            Places at(p, turn.half, task.dim);
            to[at.first] = narrow<T>(inverse * (first[j] - one[j] * product));
            if (at.second < task.dim) to[at.second] = narrow<T>(inverse * (second[j] - two[j] * product));
        }
    }
    OVER(p) {
        Places at(p, turn.half, task.dim);
        room[warp][at.first] = left[j];
        if (at.second < task.dim) room[warp][at.second] = right[j];
    }
}

template <class T> __device__ void back(const Part<T> &task, bool halves, const Frequencies &turn) {
    __shared__ float room[WARPS][256];
    if (halves) byHalves(task, turn, room);
    else byPairs(task, turn, room);
    __syncthreads();
    for (int i = threadIdx.x; i < task.dim; i += THREADS) {
        float sum = 0;
        for (int warp = 0; warp < WARPS; warp++) sum += room[warp][i];
        *task.sums.at(blockIdx.x, i) = sum;
    }
}

#define KERNEL(NAME, T)                                                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                                            \
        NAME(Matrix<T> q, Matrix<T> k, Matrix<T> qweight, Matrix<T> kweight, Matrix<T> dq, Matrix<T> dk, Matrix<float> qsums, Matrix<float> ksums, \
             i64 rows, i64 heads, i64 kv, i64 dim, i64 seq, i64 past, i64 style, double epsilon, i64 parts,                                       \
             const __grid_constant__ Frequencies turn) {                                                                                          \
        bool isK = blockIdx.y > 0, wide = halves(QK<T>{q, k, qweight, kweight, heads, kv, dim}, turn) && dq.wide() && dk.wide();                   \
        Part<T> task{isK ? k : q, isK ? kweight : qweight, isK ? dk : dq, isK ? ksums : qsums, rows, isK ? kv : heads, dim, seq, past, style, epsilon, parts}; \
        back(task, wide, turn);                                                                                                                   \
    }
KERNEL(qknorm_backward_bf16, bf16)
KERNEL(qknorm_backward_f32, float)
