#include "logits.h"

const int DEEP = 4; // by row4
const float LOWEST = -3.402823466e38f; // of what has no logit yet: less would make -∞ - -∞

// labelOf is what row i is to predict: the next id of its sequence; below 0:
// nothing.
__device__ inline i64 labelOf(const int *labels, unsigned row, unsigned seq) { return row % seq == seq - 1 ? -1 : labels[row + 1]; }

// softmax_sums updates each row's largest logit, Σ exp(logit - largest) and
// its label's logit, by a part of the vocabulary that begins at first
// (Milakov and Gimelshein, arXiv 1805.02867). A block has a row in registers and
// reads it once. A cap keeps the order of logits: the largest is looked for before it.
// What is needed in the end is read with the row: a block keeps its room till then.
template <class T, int N, bool CAP>
__device__ void softmaxSums(Matrix<T> x, const int *labels, Matrix<float> sums, i64 seq, i64 first, i64 columns, float cap) {
    __shared__ float2 room[32];
    i64 row = blockIdx.x;
    Line<T, N, DEEP> line(x.at(row), columns);
    bool bends = CAP && cap != 0;
    float unit = bends ? cap : 1, sum = 0, before = LOWEST, so = 0, logit = 0;
    bool labelled = false;
    if (threadIdx.x < 32) {
        if (first > 0) before = *sums.at(row, 0), so = *sums.at(row, 1);
        i64 label = labelOf(labels, row, seq) - first;
        labelled = label >= 0 && label < columns;
        if (labelled) logit = widen(*x.at(row, label));
    }
    Largest<T, N> largest;
    over<N, DEEP>(columns, [&](int k, i64 column) { largest.take(line.held(k, column)); });
    float most = bends ? cap * bent<T>(largest.get(), cap) : largest.get();
    over<N, DEEP>(columns, [&](int k, i64 column) {
        Several<N> values = line.get(k, column);
        EACH sum += beside<T>(bends ? bent<T>(values.at[i], cap) : values.at[i], unit, most);
    });
    float all = warpMax(most); // of the warp, then of the block
    sum = warpSum(sum == 0 ? 0 : sum * exponential<T>(most - all));
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = make_float2(all, sum);
    __syncthreads();
    if (threadIdx.x >= 32) return;
    float2 mine = threadIdx.x < blockDim.x / 32 ? room[threadIdx.x] : make_float2(LOWEST, 0);
    most = fmaxf(warpMax(mine.x), before);
    sum = warpSum(mine.y == 0 ? 0 : mine.y * expf(mine.x - most));
    if (threadIdx.x > 0) return;
    if (first > 0) sum += so * expf(before - most);
    else *sums.at(row, 2) = 0;
    if (labelled) *sums.at(row, 2) = bends ? cap * bent<T>(logit, cap) : logit;
    *sums.at(row, 0) = most, *sums.at(row, 1) = sum;
}

// loss is the mean over the labels of log Σ exp(logit) - the label's logit. One
// block, a thread has every 1024th row.
extern "C" __global__ void __launch_bounds__(1024) loss(Matrix<float> sums, const int *labels, float *lse, float *loss, i64 rows, i64 seq) {
    __shared__ double room[2][32];
    double total = 0, count = 0;
    for (i64 row = threadIdx.x; row < rows; row += 1024) {
        double logarithm = *sums.at(row, 0) + log((double)*sums.at(row, 1));
        lse[row] = (float)logarithm;
        if (labelOf(labels, row, seq) >= 0) total += logarithm - *sums.at(row, 2), count++;
    }
    total = blockSum(total, room[0]), count = blockSum(count, room[1]);
    if (threadIdx.x == 0) *loss = (float)(total / count);
}

// count is the number of labels.
extern "C" __global__ void __launch_bounds__(1024) count(const int *labels, float *y, i64 rows, i64 seq) {
    __shared__ double room[32];
    double count = 0;
    for (i64 row = threadIdx.x; row < rows; row += 1024) count += labelOf(labels, row, seq) >= 0;
    count = blockSum(count, room);
    if (threadIdx.x == 0) *y = (float)count;
}

// loss_backward turns logits into their gradients in place: softmax - 1 at the
// label, through the cap, of the mean over the labels and micro-batches. A block
// has a row.
template <class T, int N, bool CAP>
__device__ void lossBack(Matrix<T> x, const float *lse, const int *labels, const float *counted, i64 seq, i64 first, i64 columns, float cap, i64 microBatches) {
    i64 row = blockIdx.x, label = labelOf(labels, row, seq);
    Line<T, N, DEEP> line(x.at(row), columns);
    bool bends = CAP && cap != 0;
    float logarithm = lse[row], share = label < 0 ? 0 : 1 / (*counted * microBatches), unit = bends ? cap : 1;
    over<N, DEEP>(columns, [&](int k, i64 column) {
        Several<N> values = line.get(k, column);
        EACH {
            float logit = bends ? bent<T>(values.at[i], cap) : values.at[i]; // in units
            float gradient = beside<T>(logit, unit, logarithm) - (first + column + i == label ? 1 : 0);
            if (bends) gradient *= 1 - logit * logit;
            values.at[i] = share == 0 ? 0 : gradient * share;
        }
        store<N>(x.at(row, column), values);
    });
}

// In bf16 a multiprocessor is to be full of threads: with more registers it is slower.
#define SUMS(NAME, T, BLOCKS)                                                                                                            \
    extern "C" __global__ void __launch_bounds__(1024, BLOCKS)                                                                           \
        NAME(Matrix<T> x, const int *labels, Matrix<float> sums, i64 seq, i64 first, i64 columns, double cap) {                          \
        bool wide = x.wide() && columns % 8 == 0 && columns <= 2 * LONGEST;                                                                  \
        if (!wide) softmaxSums<T, 1, true>(x, labels, sums, seq, first, columns, (float)cap);                                            \
        else if (cap != 0) softmaxSums<T, 8, true>(x, labels, sums, seq, first, columns, (float)cap);                                    \
        else softmaxSums<T, 8, false>(x, labels, sums, seq, first, columns, 0);                                                          \
    }
SUMS(softmax_sums_bf16, bf16, 2)
SUMS(softmax_sums_f32, float, 1)

#define BACK(NAME, T)                                                                                                                    \
    extern "C" __global__ void __launch_bounds__(1024)                                                                                   \
        NAME(Matrix<T> x, const float *lse, const int *labels, const float *counted, i64 seq, i64 first, i64 columns, double cap,        \
             i64 microBatches) {                                                                                                         \
        bool wide = x.wide() && columns % 8 == 0 && columns <= 2 * LONGEST;                                                                  \
        if (!wide) lossBack<T, 1, true>(x, lse, labels, counted, seq, first, columns, (float)cap, microBatches);                         \
        else if (cap != 0) lossBack<T, 8, true>(x, lse, labels, counted, seq, first, columns, (float)cap, microBatches);                 \
        else lossBack<T, 8, false>(x, lse, labels, counted, seq, first, columns, 0, microBatches);                                       \
    }
BACK(loss_backward_bf16, bf16)
BACK(loss_backward_f32, float)
