#include "logits.h"

// labelOf is what row i is to predict: the next id of its sequence; below 0:
// nothing.
__device__ inline i64 labelOf(const int *labels, i64 row, i64 seq) { return row % seq == seq - 1 ? -1 : labels[row + 1]; }

// softmax_sums goes on with each row's largest logit, Σ exp(logit - largest) and
// its label's logit, by a part of the vocabulary that begins at first
// (Milakov and Gimelshein, arXiv 1805.02867). A block has a row in registers and
// reads it once.
template <class T, bool WIDE>
__device__ void softmaxSums(Matrix<T> x, const int *labels, Matrix<float> sums, i64 seq, i64 first, i64 columns, double cap) {
    __shared__ float room[2][32];
    i64 row = blockIdx.x;
    Eight kept[KEPT];
    float limit = (float)cap, most = __int_as_float(0xff800000), before = most, sum = 0, so = 0;
    if (first > 0) before = *sums.at(row, 0), so = *sums.at(row, 1);
    over(columns, [&](int k, i64 column) {
        i64 left = columns - column;
        kept[k] = load<WIDE>(x.at(row, column), left);
        EIGHT if (WIDE || i < left) {
            if (limit != 0) kept[k].at[i] = capped<T>(kept[k].at[i], limit);
            most = fmaxf(most, kept[k].at[i]);
        }
    });
    most = fmaxf(blockMax(most, room[0]), before);
    over(columns, [&](int k, i64 column) {
        EIGHT if (WIDE || i < columns - column) sum += exponential<T>(kept[k].at[i] - most);
    });
    sum = blockSum(sum, room[1]);
    if (threadIdx.x > 0) return;
    i64 label = labelOf(labels, row, seq) - first;
    if (first > 0) sum += so * expf(before - most);
    else *sums.at(row, 2) = 0;
    if (label >= 0 && label < columns) {
        float logit = widen(*x.at(row, label));
        *sums.at(row, 2) = limit != 0 ? capped<T>(logit, limit) : logit;
    }
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
// label, through the cap, of the mean over the labels and micro-batches.
template <class T, bool WIDE>
__device__ void lossBack(Matrix<T> x, const float *lse, const int *labels, const float *counted, i64 seq, i64 first, i64 columns, double cap, double microBatches) {
    i64 row = blockIdx.x, label = labelOf(labels, row, seq);
    float limit = (float)cap, logarithm = lse[row], share = label < 0 ? 0 : (float)(1 / (*counted * microBatches));
    label -= first;
    over(columns, [&](int k, i64 column) {
        Eight values = load<WIDE>(x.at(row, column), columns - column);
        EIGHT {
            float logit = limit != 0 ? capped<T>(values.at[i], limit) : values.at[i];
            float gradient = exponential<T>(logit - logarithm) - (column + i == label ? 1 : 0);
            if (limit != 0) gradient *= cappedSlope(logit, limit);
            values.at[i] = share == 0 ? 0 : gradient * share;
        }
        store<WIDE>(x.at(row, column), columns - column, values);
    });
}

#define KERNELS(SUMS, BACK, T)                                                                                                                \
    extern "C" __global__ void __launch_bounds__(1024)                                                                                        \
        SUMS(Matrix<T> x, const int *labels, Matrix<float> sums, i64 seq, i64 first, i64 columns, double cap) {                               \
        if (x.wide() && columns % 8 == 0) softmaxSums<T, true>(x, labels, sums, seq, first, columns, cap);                                    \
        else softmaxSums<T, false>(x, labels, sums, seq, first, columns, cap);                                                                \
    }                                                                                                                                         \
    extern "C" __global__ void __launch_bounds__(1024) BACK(Matrix<T> x, const float *lse, const int *labels, const float *counted, i64 seq,  \
                                                            i64 first, i64 columns, double cap, i64 microBatches) {                           \
        if (x.wide() && columns % 8 == 0) lossBack<T, true>(x, lse, labels, counted, seq, first, columns, cap, (double)microBatches);         \
        else lossBack<T, false>(x, lse, labels, counted, seq, first, columns, cap, (double)microBatches);                                     \
    }
KERNELS(softmax_sums_bf16, loss_backward_bf16, bf16)
KERNELS(softmax_sums_f32, loss_backward_f32, float)
