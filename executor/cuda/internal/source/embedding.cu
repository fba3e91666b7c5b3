#include "common.h"

// embedding: rows of a table, times a scale that has the table's type
// (Gemma3TextScaledWordEmbedding), or added to the stream. By token id, or
// without ids by position: past, or with past < 0 the row in its sequence. An id
// that the table has not makes NaN.
const int DEEP = 4; // by row4

template <class T, int N>
__device__ void embedding(i64 id, Matrix<T> table, Matrix<T> add, Matrix<T> y, i64 columns, i64 entries, double scale) {
    i64 row = blockIdx.x;
    bool there = id >= 0 && id < entries;
    Line<T, N, DEEP> line(table.at(there ? id : 0), columns);
    float factor = rounded<T>((float)scale);
    over<N, DEEP>(columns, [&](int k, i64 column) {
        Several<N> made = line.get(k, column);
        if (factor != 1) EACH made.at[i] = rounded<T>(made.at[i] * factor);
        if (!there) EACH made.at[i] = __int_as_float(0x7fffffff);
        if (add.data) {
            Several<N> more = load<N>(add.at(row, column));
            EACH made.at[i] += more.at[i];
        }
        store<N>(y.at(row, column), made);
    });
}

#define EMBEDDING(NAME, T)                                                                                                                \
    extern "C" __global__ void __launch_bounds__(1024) NAME(const int *ids, Matrix<T> table, Matrix<T> add, Matrix<T> y, i64 columns,     \
                                                            i64 entries, i64 seq, i64 past, double scale) {                               \
        i64 id = ids ? ids[blockIdx.x] : past >= 0 ? past : blockIdx.x % (unsigned)seq;                                                   \
        if (table.wide() && add.wide() && y.wide() && columns % 8 == 0 && columns <= 2 * LONGEST)                                             \
            embedding<T, 8>(id, table, add, y, columns, entries, scale);                                                                  \
        else                                                                                                                              \
            embedding<T, 1>(id, table, add, y, columns, entries, scale);                                                                  \
    }
EMBEDDING(embedding_bf16, bf16)
EMBEDDING(embedding_f32, float)

// sort: ids, and the tokens that have them, tokens of one id in their order. The
// place of a token is the number of tokens that go before it, which are counted:
// quadratic, but 8192 tokens take microseconds, there is no room to share and
// counts are the same in any order. A block places 32 tokens, each warp counts
// a stretch of the others. In work, the recipe's room for sorts that need one, it
// leaves where each token went, and its id: what is planned is written.
extern "C" __global__ void sort(const int *ids, int *order, int *work, i64 count) {
    __shared__ int room[8][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64 token = (i64)blockIdx.x * 32 + lane, each = (count + 7) / 8, end = min(count, each * (warp + 1));
    int id = token < count ? ids[token] : 0, before = 0;
    _Pragma("unroll 8") for (i64 other = each * warp; other < end; other++) {
        int one = ids[other];
        before += one < id || (one == id && other < token);
    }
    room[warp][lane] = before;
    __syncthreads();
    if (warp > 0 || token >= count) return;
    i64 place = 0;
    for (int i = 0; i < 8; i++) place += room[i][lane];
    order[place] = id;
    order[count + place] = (int)token;
    if (!work) return;
    work[token] = (int)place;
    work[count + token] = id;
}

// run adds the tokens behind the first of an id, four on their way at once. It is a
// call: most ids are there once.
template <class X, int N> __noinline__ __device__ Several<N> run(const int *order, Matrix<X> dy, i64 at, i64 step, i64 rows, int id, i64 column, float factor, Several<N> sum) {
    bool goes = true;
    _Pragma("unroll 1") for (; goes; at += 4 * step) {
        Held<X, N> slopes[4];
        bool there[4];
        _Pragma("unroll") for (int j = 0; j < 4; j++) {
            i64 place = at + j * step;
            there[j] = place < rows && (!order || order[place] == id);
            if (there[j]) slopes[j].read(dy.at(order ? order[rows + place] : place, column));
        }
        _Pragma("unroll") for (int j = 0; j < 4; j++) {
            if (!there[j]) continue;
            Several<N> more = slopes[j].get();
            EACH sum.at[i] = fmaf(factor, more.at[i], sum.at[i]);
        }
        goes = there[3];
    }
    return sum;
}

// embedding_backward: d += the stream's gradient, by row of the table. A block
// has PLACES of the sorted ids and adds up the run that begins at each, in order; or
// without ids positions, each in all sequences. What it needs of all its places is
// read at once: ids, then rows. d was cleared where the gradient begins. The row
// padding gets none.
const int PLACES = 4;

template <class X, class T, int N>
__device__ void embeddingBack(const int *order, Matrix<X> dy, Matrix<T> d, i64 rows, i64 columns, i64 entries, i64 seq, i64 padding, double scale) {
    i64 first = (i64)blockIdx.x * PLACES, count = order ? rows : seq, step = order ? 1 : seq;
    int ids[PLACES + 2], tokens[PLACES]; // of the place before, of its own and of the one behind
    _Pragma("unroll") for (int j = 0; j < PLACES + 2; j++) {
        i64 at = first + j - 1;
        ids[j] = at < 0 || at >= count ? -1 : order ? order[at] : (int)at;
        if (j > 0 && j <= PLACES) tokens[j - 1] = at >= count ? 0 : order ? order[rows + at] : (int)at;
    }
    auto begins = [&](int j) { return ids[j + 1] != ids[j] && ids[j + 1] != padding && ids[j + 1] >= 0 && ids[j + 1] < entries; };
    float factor = rounded<X>((float)scale);
    for (i64 column = (i64)threadIdx.x * N; column < columns; column += blockDim.x * N) {
        Held<T, N> sums[PLACES];
        Held<X, N> slopes[PLACES];
        _Pragma("unroll") for (int j = 0; j < PLACES; j++)
            if (begins(j)) sums[j].read(d.at(ids[j + 1], column)), slopes[j].read(dy.at(tokens[j], column));
        _Pragma("unroll") for (int j = 0; j < PLACES; j++) {
            if (!begins(j)) continue;
            Several<N> sum = sums[j].get(), more = slopes[j].get();
            EACH sum.at[i] = fmaf(factor, more.at[i], sum.at[i]);
            if (!order || ids[j + 2] == ids[j + 1]) sum = run<X, N>(order, dy, first + j + step, step, rows, ids[j + 1], column, factor, sum);
            store<N>(d.at(ids[j + 1], column), sum);
        }
    }
}

#define EMBEDDING_BACK(NAME, X, T)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256, 4)                                                                              \
        NAME(const int *order, Matrix<X> dy, Matrix<T> d, i64 rows, i64 columns, i64 entries, i64 seq, i64 padding, double scale) {   \
        if (dy.wide() && d.wide() && columns % 8 == 0)                                                                                \
            embeddingBack<X, T, 8>(order, dy, d, rows, columns, entries, seq, padding, scale);                                     \
        else                                                                                                                          \
            embeddingBack<X, T, 1>(order, dy, d, rows, columns, entries, seq, padding, scale);                                    \
    }
EMBEDDING_BACK(embedding_backward_bf16_bf16, bf16, bf16)
EMBEDDING_BACK(embedding_backward_bf16_f32, bf16, float)
EMBEDDING_BACK(embedding_backward_f32_f32, float, float)
