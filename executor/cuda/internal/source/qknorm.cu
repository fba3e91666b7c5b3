#include "qknorm.h"

// qknorm: RMSNorm of each head, which then turns. A block has a row of q and k.
template <class T> __device__ void byHalves(const QK<T> &task, Matrix<T> yq, Matrix<T> yk, const Frequencies &turn, float *cosines, float *sines) {
    const int N = 8;
    i64 row = blockIdx.x, half = turn.half;
    int lanes = (int)task.dim / 16, own = threadIdx.x % lanes * 8, heads = (int)(task.heads + task.kv);
    Pair<T> x = {}, factors[2];
    factors[0].read(task.qweight.at(0, own), half), factors[1].read(task.kweight.at(0, own), half);
    auto fetch = [&](int head) {
        if (head < heads) x.read((head < task.heads ? task.q.at(row, head * task.dim) : task.k.at(row, (head - task.heads) * task.dim)) + own, half);
    };
    fetch(threadIdx.x / lanes);
    angles<T>(turn, position(row, task.seq, task.past), cosines, sines);
    __syncthreads();
    _Pragma("unroll 1") for (int base = 0; base < heads; base += 256 / lanes) {
        int head = base + threadIdx.x / lanes;
        bool isK = head >= task.heads;
        Several<8> one = x.first.get(), two = x.second.get();
        float squares = 0;
        EACH squares = fmaf(one.at[i], one.at[i], fmaf(two.at[i], two.at[i], squares));
        float inverse = 1 / sqrtf(sharedSum(squares, lanes) / task.dim + (float)task.epsilon), more = task.gemma ? 1 : 0;
        Several<8> left = (isK ? factors[1] : factors[0]).first.get(), right = (isK ? factors[1] : factors[0]).second.get();
        EACH {
            float first = one.at[i] * inverse, second = two.at[i] * inverse;
            if (!task.gemma) first = rounded<T>(first), second = rounded<T>(second);
            one.at[i] = rounded<T>(first * (left.at[i] + more)), two.at[i] = rounded<T>(second * (right.at[i] + more));
            turned<T>(one.at[i], two.at[i], cosines[own + i], sines[own + i]);
        }
        fetch(head + 256 / lanes);
        if (head >= heads) continue;
        T *to = isK ? yk.at(row, (head - task.heads) * task.dim + own) : yq.at(row, head * task.dim + own);
        store<8>(to, one);
        store<8>(to + half, two);
    }
}

template <class T> __device__ void byPairs(const QK<T> &task, Matrix<T> yq, Matrix<T> yk, const Frequencies &turn, float *cosines, float *sines) {
    i64 row = blockIdx.x;
    angles<T>(turn, position(row, task.seq, task.past), cosines, sines);
    __syncthreads();
    _Pragma("unroll 1") for (i64 head = threadIdx.x / 32; head < task.heads + task.kv; head += 8) {
        bool isK = head >= task.heads;
        T *from = isK ? task.k.at(row, (head - task.heads) * task.dim) : task.q.at(row, head * task.dim);
        T *to = isK ? yk.at(row, (head - task.heads) * task.dim) : yq.at(row, head * task.dim);
        const T *weight = isK ? task.kweight.data : task.qweight.data;
        float one[PAIRS], two[PAIRS], squares = 0;
        OVER(p) {
            Places at(p, turn.half, task.dim);
            one[j] = widen(from[at.first]), two[j] = at.second < task.dim ? widen(from[at.second]) : 0;
            squares = fmaf(one[j], one[j], fmaf(two[j], two[j], squares));
        }
        float inverse = 1 / sqrtf(warpSum(squares) / task.dim + (float)task.epsilon), more = task.gemma ? 1 : 0;
        OVER(p) {
            Places at(p, turn.half, task.dim);
            float first = one[j] * inverse, second = two[j] * inverse;
            if (!task.gemma) first = rounded<T>(first), second = rounded<T>(second);
            first = rounded<T>(first * (widen(weight[at.first]) + more)), second = rounded<T>(second * (at.second < task.dim ? widen(weight[at.second]) + more : 0));
            if (p < turn.half) turned<T>(first, second, cosines[p], sines[p]);
            to[at.first] = narrow<T>(first);
            if (at.second < task.dim) to[at.second] = narrow<T>(second);
        }
    }
}

#define KERNEL(NAME, T)                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                                                        \
        NAME(Matrix<T> q, Matrix<T> k, Matrix<T> qweight, Matrix<T> kweight, Matrix<T> yq, Matrix<T> yk, i64 heads, i64 kv, i64 dim, i64 seq,   \
             i64 past, i64 style, double epsilon, const __grid_constant__ Frequencies turn) {                                                   \
        __shared__ float cosines[128], sines[128];                                                                                              \
        QK<T> task{q, k, qweight, kweight, heads, kv, dim, seq, past, style, epsilon};                                                          \
        if (halves(task, turn) && yq.wide() && yk.wide()) byHalves(task, yq, yk, turn, cosines, sines);                                         \
        else byPairs(task, yq, yk, turn, cosines, sines);                                                                                       \
    }
KERNEL(qknorm_bf16, bf16)
KERNEL(qknorm_f32, float)
