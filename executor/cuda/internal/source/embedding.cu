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
                                                            i64 entries, i64 seq, Place past, double scale) {                               \
        i64 id = ids ? ids[blockIdx.x] : past.past >= 0 ? past.get() : blockIdx.x % (unsigned)seq;                                                   \
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

// run adds up the tokens of one id, in their order: RUN of them on their way at once,
// and which the next are with them.
template <class X, class T, int N>
__device__ void run(const int *order, Matrix<X> dy, Matrix<T> d, i64 first, i64 step, i64 rows, i64 columns, int id, float factor) {
    const int RUN = sizeof(X) == 2 ? 8 : 4;
    for (i64 column = (i64)threadIdx.x * N; column < columns; column += blockDim.x * N) {
        Several<N> sum = load<N>(d.at(id, column));
        i64 at = first;
        int tokens[RUN]; // -1 where there are no more
        auto find = [&]() {
            _Pragma("unroll") for (int j = 0; j < RUN; j++, at += step) {
                bool there = at < rows && (!order || order[at] == id);
                tokens[j] = !there ? -1 : order ? order[rows + at] : (int)at;
            }
        };
        find();
        _Pragma("unroll 1") while (tokens[0] >= 0) {
            Held<X, N> slopes[RUN];
            bool there[RUN];
            _Pragma("unroll") for (int j = 0; j < RUN; j++) {
                there[j] = tokens[j] >= 0;
                if (there[j]) slopes[j].read(dy.at(tokens[j], column));
            }
            find();
            _Pragma("unroll") for (int j = 0; j < RUN; j++) {
                if (!there[j]) continue;
                Several<N> more = slopes[j].get();
                EACH sum.at[i] = fmaf(factor, more.at[i], sum.at[i]);
            }
        }
        store<N>(d.at(id, column), sum);
    }
}

// embedding_backward: d += the stream's gradient, by row of the table. A block
// has PLACES of the sorted ids: what is there once, which most are, together, with
// what that needs read at once; then the runs that begin at its places. Without ids
// it has positions, each in all sequences. d was cleared where the gradient begins.
// The row padding gets none.
const int PLACES = 4;

template <class X, class T, int N>
__device__ void embeddingBack(const int *order, Matrix<X> dy, Matrix<T> d, i64 rows, i64 columns, i64 entries, i64 seq, i64 padding, double scale) {
    i64 first = (i64)blockIdx.x * PLACES, count = order ? rows : seq;
    float factor = rounded<X>((float)scale);
    auto id = [&](i64 at) { return at < 0 || at >= count ? -1 : order ? order[at] : (int)at; };
    int ids[PLACES + 2], tokens[PLACES]; // of the place before, of its own and of the one behind
    _Pragma("unroll") for (int j = 0; j < PLACES + 2; j++) {
        ids[j] = id(first + j - 1);
        if (order && j > 0 && j <= PLACES && first + j <= count) tokens[j - 1] = order[rows + first + j - 1];
    }
    auto begins = [&](int before, int id) { return id != before && id != padding && id >= 0 && id < entries; };
    bool once[PLACES];
    _Pragma("unroll") for (int j = 0; j < PLACES; j++) once[j] = order && begins(ids[j], ids[j + 1]) && ids[j + 2] != ids[j + 1];
    for (i64 column = (i64)threadIdx.x * N; column < columns; column += blockDim.x * N) {
        Held<T, N> sums[PLACES];
        Held<X, N> slopes[PLACES];
        _Pragma("unroll") for (int j = 0; j < PLACES; j++)
            if (once[j]) sums[j].read(d.at(ids[j + 1], column)), slopes[j].read(dy.at(tokens[j], column));
        _Pragma("unroll") for (int j = 0; j < PLACES; j++) {
            if (!once[j]) continue;
            Several<N> sum = sums[j].get(), more = slopes[j].get();
            EACH sum.at[i] = fmaf(factor, more.at[i], sum.at[i]);
            store<N>(d.at(ids[j + 1], column), sum);
        }
    }
    _Pragma("unroll 1") for (i64 at = first; at < min(first + PLACES, count); at++)
        if (begins(id(at - 1), id(at)) && (!order || id(at + 1) == id(at))) run<X, T, N>(order, dy, d, at, order ? 1 : seq, rows, columns, id(at), factor);
}

#define EMBEDDING_BACK(NAME, X, T)                                                                                                    \
    extern "C" __global__ void __launch_bounds__(256, 3)                                                                              \
        NAME(const int *order, Matrix<X> dy, Matrix<T> d, i64 rows, i64 columns, i64 entries, i64 seq, i64 padding, double scale) {   \
        if (dy.wide() && d.wide() && columns % 8 == 0)                                                                                \
            embeddingBack<X, T, 8>(order, dy, d, rows, columns, entries, seq, padding, scale);                                     \
        else                                                                                                                          \
            embeddingBack<X, T, 1>(order, dy, d, rows, columns, entries, seq, padding, scale);                                    \
    }
EMBEDDING_BACK(embedding_backward_bf16_bf16, bf16, bf16)
EMBEDDING_BACK(embedding_backward_bf16_f32, bf16, float)
EMBEDDING_BACK(embedding_backward_f32_f32, float, float)
