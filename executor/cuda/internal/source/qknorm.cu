#include "qknorm.h"

// qknorm: RMSNorm of each head, which then turns. A warp has a row of q and k,
// some lanes a head and every so many after it, whose next is read ahead of what is
// worked on. Weights are read as they are needed: in registers they would cost more
// warps than that takes.
template <class T> __device__ void byHalves(const QK<T> &task, Matrix<T> yq, Matrix<T> yk, const Frequencies &turn, const Share &part) {
    const int N = 8;
    i64 row = part.row;
    int half = (int)turn.half, lanes = half / 8, abreast = 32 / lanes, step = abreast * part.shares, mine = part.first * abreast + threadIdx.x % 32 / lanes, own = threadIdx.x % lanes * 8;
    int heads = (int)task.heads, all = heads + (int)task.kv;
    float share = 1.0f / task.dim, epsilon = (float)task.epsilon;
    Pair<T> x = {};
    auto fetch = [&](int head) {
        if (head < all) x.read((head < heads ? task.q.at(row, head * task.dim) : task.k.at(row, (head - heads) * task.dim)) + own, half);
    };
    fetch(mine);
    Turn<T, 8> by(turn, position(row, task.seq, task.past), own, false);
    _Pragma("unroll 1") for (int base = 0; base < all; base += step) {
        int head = base + mine;
        Pair<T> y = x, weight;
        weight.read((head < heads ? task.qweight : task.kweight).at(0, own), half);
        float inverse = inverseRoot<T>(fmaf(sharedSum(y.squares(), lanes), share, epsilon));
        Several<8> one = y.first.get(), two = y.second.get();
        EACH one.at[i] *= inverse, two.at[i] *= inverse;
        if (task.gemma) {
            Several<8> left = weight.first.get(), right = weight.second.get();
            EACH one.at[i] *= left.at[i] + 1, two.at[i] *= right.at[i] + 1;
        }
        y.first.set(one), y.second.set(two);
        if (!task.gemma) y.first.times(weight.first), y.second.times(weight.second);
        turned(y.first, y.second, by);
        if (head < heads) y.write(yq.at(row, head * task.dim) + own, half);
        else if (head < all) y.write(yk.at(row, (head - heads) * task.dim) + own, half);
        fetch(head + step);
    }
}

template <class T> __device__ void byPairs(const QK<T> &task, Matrix<T> yq, Matrix<T> yk, const Frequencies &turn, const Share &part) {
    i64 row = part.row;
    float cosines[PAIRS], sines[PAIRS];
    OVER(p) if (p < turn.half) {
        Turn<T, 1> by(turn, position(row, task.seq, task.past), p, false);
        cosines[j] = by.cosines.get().at[0], sines[j] = by.sines.get().at[0];
    }
    _Pragma("unroll 1") for (i64 head = part.first; head < task.heads + task.kv; head += part.shares) {
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
        float inverse = inverseRoot<T>(warpSum(squares) / task.dim + (float)task.epsilon), more = task.gemma ? 1 : 0;
        OVER(p) {
            Places at(p, turn.half, task.dim);
            float first = one[j] * inverse, second = two[j] * inverse;
            if (!task.gemma) first = rounded<T>(first), second = rounded<T>(second);
            first = rounded<T>(first * (widen(weight[at.first]) + more)), second = rounded<T>(second * (at.second < task.dim ? widen(weight[at.second]) + more : 0));
            if (p < turn.half) turned<T>(first, second, cosines[j], sines[j]);
            to[at.first] = narrow<T>(first);
            if (at.second < task.dim) to[at.second] = narrow<T>(second);
        }
    }
}

#define KERNEL(NAME, T)                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                                                        \
        NAME(Matrix<T> q, Matrix<T> k, Matrix<T> qweight, Matrix<T> kweight, Matrix<T> yq, Matrix<T> yk, i64 rows, i64 heads, i64 kv, i64 dim,  \
             i64 seq, Place past, i64 style, double epsilon, const __grid_constant__ Frequencies turn) {                                          \
        Share part(rows);                                                                                                                       \
        if (part.row >= rows) return;                                                                                                           \
        QK<T> task{q, k, qweight, kweight, heads, kv, dim, seq, past.get(), style, epsilon};                                                          \
        if (halves(task, turn) && yq.wide() && yk.wide()) byHalves(task, yq, yk, turn, part);                                                   \
        else byPairs(task, yq, yk, turn, part);                                                                                                 \
    }
KERNEL(qknorm_bf16, bf16)
KERNEL(qknorm_f32, float)
