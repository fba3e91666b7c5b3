#include "qknorm.h"

// qknorm_backward turns the gradients of q and k back and takes them through the
// norms, in place. Row i belongs to part i modulo the parts: a part is a block, of
// q's heads and then of k's. Its lanes go through the heads of its rows, GROUP of a
// row one after another, whose angles are the same. Sums for the weight's gradient
// are added in an order that follows from sizes.
const int GROUP = 4, THREADS = 512, WARPS = THREADS / 32;

template <class T> struct Part {
    Matrix<T> x, weight, gradient;
    Matrix<float> sums;
    i64 rows, heads, dim, seq, past, gemma;
    double epsilon;
    i64 parts;
};

// Sums is a lane's part of the weight's gradient.
struct Sums { Several<8> left, right; };

// back takes a head's gradient, turned back, through its norm: with n = x·inverse,
// inverse·(g·weight - n·mean(g·weight·n)). It goes over the values twice, as they
// lie, which takes fewer registers than to keep what is made of them.
template <class T> __device__ void back(const Pair<T> &x, Pair<T> &gradient, const Pair<T> &weight, float more, float share, float epsilon, int lanes, Sums &sums) {
    const int N = 8;
    float inverse = inverseRoot<T>(fmaf(sharedSum(x.squares(), lanes), share, epsilon)), product = 0;
    auto half = [&](const Held<T, 8> &x, Held<T, 8> &gradient, const Held<T, 8> &weight, Several<8> &sum) {
        Several<8> one = x.get(), slope = gradient.get(), factor = weight.get();
        EACH {
            float scaled = slope.at[i] * inverse;
            sum.at[i] = fmaf(scaled, one.at[i], sum.at[i]);
            product = fmaf(scaled * (factor.at[i] + more), one.at[i], product);
        }
    };
    half(x.first, gradient.first, weight.first, sums.left), half(x.second, gradient.second, weight.second, sums.right);
    float less = -sharedSum(product, lanes) * share * inverse * inverse;
    auto through = [&](const Held<T, 8> &x, Held<T, 8> &gradient, const Held<T, 8> &weight) {
        Several<8> one = x.get(), slope = gradient.get(), factor = weight.get();
        EACH slope.at[i] = fmaf(one.at[i], less, slope.at[i] * inverse * (factor.at[i] + more));
        gradient.set(slope);
    };
    through(x.first, gradient.first, weight.first), through(x.second, gradient.second, weight.second);
}

template <class T> __device__ void byHalves(const Part<T> &task, const Frequencies &turn, float (*room)[256]) {
    const int N = 8, AHEAD = sizeof(T) == 2 ? 2 : 1;
    int half = (int)turn.half, lanes = half / 8, own = threadIdx.x % lanes * 8, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned groups = (unsigned)(task.heads + GROUP - 1) / GROUP, items = (unsigned)((task.rows - blockIdx.x + task.parts - 1) / task.parts) * groups;
    int heads = (int)task.heads, together = min(heads, GROUP);
    float more = task.gemma ? 1 : 0, share = 1.0f / task.dim, epsilon = (float)task.epsilon;
    Pair<T> weight;
    weight.read(task.weight.at(0, own), half);
    Sums sums = {};
    _Pragma("unroll 1") for (unsigned base = 0; base < items; base += THREADS / lanes) {
        unsigned item = base + threadIdx.x / lanes;
        i64 row = blockIdx.x + item / groups * task.parts;
        int begin = item % groups * GROUP, end = item < items ? min(begin + together, heads) : 0;
        const T *from = task.x.at(row, begin * task.dim + own);
        T *to = task.gradient.at(row, begin * task.dim + own);
        Pair<T> x[AHEAD] = {}, gradient[AHEAD] = {};
        auto fetch = [&](int j, int i) {
            if (begin + i < end) x[j].read(from + i * task.dim, half), gradient[j].read(to + i * task.dim, half);
        };
        _Pragma("unroll") for (int j = 0; j < AHEAD; j++) fetch(j, j);
        Turn<T, 8> by(turn, position(min(row, task.rows - 1), task.seq, task.past), own, true);
        _Pragma("unroll 1") for (int first = 0; first < together; first += AHEAD)
            _Pragma("unroll") for (int j = 0; j < AHEAD; j++) {
                int i = first + j;
                if (begin + i >= end) x[j] = {}, gradient[j] = {};
                turned(gradient[j].first, gradient[j].second, by);
                back(x[j], gradient[j], weight, more, share, epsilon, lanes, sums);
                if (begin + i < end) gradient[j].write(to + i * task.dim, half);
                fetch(j, i + AHEAD);
            }
    }
    for (int away = 16; away >= lanes; away /= 2)
        EACH sums.left.at[i] += __shfl_xor_sync(~0u, sums.left.at[i], away), sums.right.at[i] += __shfl_xor_sync(~0u, sums.right.at[i], away);
    if (lane < lanes) EACH room[warp][own + i] = sums.left.at[i], room[warp][half + own + i] = sums.right.at[i];
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
        float inverse = inverseRoot<T>(warpSum(squares) / task.dim + (float)task.epsilon);
        OVER(p) {
            Places at(p, turn.half, task.dim);
            if (p < turn.half) {
                Turn<T, 1> by(turn, position(row, task.seq, task.past), p, true);
                turned<T>(first[j], second[j], by.cosines.get().at[0], by.sines.get().at[0]);
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

// part makes a block's sums of q or k.
template <class T> __device__ void part(const Part<T> &task, bool halves, const Frequencies &turn, float (*room)[256]) {
    if (halves) byHalves(task, turn, room);
    else byPairs(task, turn, room);
    __syncthreads();
    for (int i = threadIdx.x; i < task.dim; i += THREADS) {
        float sum = 0;
        for (int warp = 0; warp < WARPS; warp++) sum += room[warp][i];
        *task.sums.at(blockIdx.x, i) = sum;
    }
    __syncthreads(); // before the room is another's
}

#define KERNEL(NAME, T)                                                                                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                                                         \
        NAME(Matrix<T> q, Matrix<T> k, Matrix<T> qweight, Matrix<T> kweight, Matrix<T> dq, Matrix<T> dk, Matrix<float> qsums, Matrix<float> ksums, \
             i64 rows, i64 heads, i64 kv, i64 dim, i64 seq, Place past, i64 style, double epsilon, i64 parts,                                       \
             const __grid_constant__ Frequencies turn) {                                                                                          \
        __shared__ float room[WARPS][256];                                                                                                        \
        bool wide = halves(QK<T>{q, k, qweight, kweight, heads, kv, dim}, turn) && dq.wide() && dk.wide();                                        \
        _Pragma("unroll 1") for (int which = 0; which < 2; which++)                                                                               \
            part(which ? Part<T>{k, kweight, dk, ksums, rows, kv, dim, seq, past.get(), style, epsilon, parts}                                          \
                       : Part<T>{q, qweight, dq, qsums, rows, heads, dim, seq, past.get(), style, epsilon, parts}, wide, turn, room);                   \
    }
KERNEL(qknorm_backward_bf16, bf16)
KERNEL(qknorm_backward_f32, float)
