#include "logits.h"

// cache puts keys and values where their positions stand in the rings of their
// sequences; of a prompt that is longer than the ring the last ones.
template <class T, bool WIDE> __device__ void put(Matrix<T> from, Matrix<T> ring, i64 row, i64 column, i64 columns, i64 to) {
    store<WIDE>(ring.at(to, column), columns - column, load<WIDE>(from.at(row, column), columns - column));
}

// lanesOf is how many lanes go through a head eight values each: a power of two,
// so that they add up among themselves.
__device__ inline int lanesOf(i64 dim) {
    int lanes = 1;
    while (lanes < 32 && lanes * 8 < dim) lanes *= 2;
    return lanes;
}

__device__ inline float lanesSum(float value, int lanes) {
    for (int away = lanes / 2; away > 0; away /= 2) value += __shfl_xor_sync(~0u, value, away);
    return value;
}

const int HEADS = 8, SPAN = 512, WIDEST = 256; // heads of a group that a block has, positions, values of a head

struct Shared { float query[HEADS][WIDEST], scores[HEADS][SPAN], room[256 * 8], total[HEADS], largest[HEADS]; };

// attention_decode is attention of one query a sequence to its cache. A block
// has a span of its positions (blockIdx.x), up to eight heads of a group
// (blockIdx.y) and a sequence (blockIdx.z): keys and values are read once for
// all of these heads. It leaves Σ weight·value, the largest score and the sum of
// weights for attention_join, or there is one span and it is the output.
template <class T, bool WIDE>
__device__ void decode(Matrix<T> q, Matrix<T> keys, Matrix<T> values, Matrix<T> y, Matrix<float> parts, i64 heads, i64 kv, i64 dim, i64 past, double scale,
                       double cap, i64 positions, i64 span, Shared &block) {
    const int AHEAD = WIDE ? 4 : 1; // keys or values of a thread that are on their way at once
    auto &[query, scores, room, total, largest] = block;
    i64 shared = heads / kv, chunks = (shared + HEADS - 1) / HEADS, group = blockIdx.y / chunks, begin = blockIdx.y % chunks * HEADS;
    i64 head = group * shared + begin, sequence = blockIdx.z, row = sequence * positions + blockIdx.x * span;
    int count = (int)min((i64)HEADS, shared - begin);
    int width = (int)max(min(min(positions, past + 1) - (i64)blockIdx.x * span, span), 0ll); // what is not written may be no number
    for (i64 i = threadIdx.x; i < count * dim; i += 256) query[i / dim][i % dim] = widen(*q.at(sequence, head * dim + i)) * (float)scale;
    __syncthreads();
    int lanes = lanesOf(dim), lane = threadIdx.x % lanes, keysAtOnce = 256 / lanes;
    for (int base = 0; base < width; base += AHEAD * keysAtOnce) {
        Held<T, WIDE> ahead[AHEAD];
        _Pragma("unroll") for (int j = 0; j < AHEAD; j++) {
            int key = base + j * keysAtOnce + threadIdx.x / lanes;
            if (key < width && lane * 8 < dim) ahead[j].read(keys.at(row + key, group * dim + lane * 8), dim - lane * 8);
        }
        _Pragma("unroll") for (int j = 0; j < AHEAD; j++) {
            int key = base + j * keysAtOnce + threadIdx.x / lanes;
            Eight one = ahead[j].get();
            _Pragma("unroll") for (int h = 0; h < HEADS; h++) if (h < count) {
                float sum = 0;
                if (key < width && lane * 8 < dim) EIGHT if (WIDE || lane * 8 + i < dim) sum = fmaf(one.at[i], query[h][lane * 8 + i], sum);
                sum = lanesSum(sum, lanes);
                if (key < width && lane == 0) scores[h][key] = cap != 0 ? capped<float>(sum, (float)cap) : sum;
            }
        }
    }
    __syncthreads();
    int warp = threadIdx.x / 32;
    if (warp < count) {
        float most = __int_as_float(0xff800000), sum = 0;
        for (int i = threadIdx.x % 32; i < width; i += 32) most = fmaxf(most, scores[warp][i]);
        most = warpMax(most);
        for (int i = threadIdx.x % 32; i < width; i += 32) sum += scores[warp][i] = expf(scores[warp][i] - most);
        sum = warpSum(sum);
        if (threadIdx.x % 32 == 0) total[warp] = sum, largest[warp] = most;
    }
    __syncthreads();
    int eights = (int)((dim + 7) / 8), slices = 256 / eights, slice = threadIdx.x / eights, column = threadIdx.x % eights * 8;
    Eight sum[HEADS] = {};
    if (slice < slices)
        for (int base = slice; base < width; base += AHEAD * slices) {
            Held<T, WIDE> ahead[AHEAD];
            _Pragma("unroll") for (int j = 0; j < AHEAD; j++)
                if (base + j * slices < width) ahead[j].read(values.at(row + base + j * slices, group * dim + column), dim - column);
            _Pragma("unroll") for (int j = 0; j < AHEAD; j++) if (base + j * slices < width) {
                Eight one = ahead[j].get();
                _Pragma("unroll") for (int h = 0; h < HEADS; h++) if (h < count) EIGHT sum[h].at[i] = fmaf(scores[h][base + j * slices], one.at[i], sum[h].at[i]);
            }
        }
    _Pragma("unroll") for (int h = 0; h < HEADS; h++) if (h < count) {
        __syncthreads();
        if (slice < slices) EIGHT room[(slice * eights * 8) + column + i] = sum[h].at[i];
        __syncthreads();
        if (threadIdx.x < dim) {
            float made = 0;
            for (int i = 0; i < slices; i++) made += room[i * eights * 8 + threadIdx.x];
            if (y.data) {
                *y.at(sequence, (head + h) * dim + threadIdx.x) = narrow<T>(made / total[h]);
            } else {
                float *part = parts.at(blockIdx.x * (i64)gridDim.z + sequence, (head + h) * (dim + 2));
                part[threadIdx.x] = made;
                if (threadIdx.x == 0) part[dim] = largest[h], part[dim + 1] = total[h];
            }
        }
    }
}

// attention_join joins the parts of each head in their order: a block a row, a
// thread a value.
template <class T> __device__ void join(Matrix<float> parts, Matrix<T> y, i64 rows, i64 heads, i64 dim, i64 count) {
    for (i64 i = threadIdx.x; i < heads * dim; i += blockDim.x) {
        i64 first = i / dim * (dim + 2);
        float most = __int_as_float(0xff800000), sum = 0, weight = 0;
        for (i64 part = 0; part < count; part++) most = fmaxf(most, *parts.at(part * rows + blockIdx.x, first + dim));
        for (i64 part = 0; part < count; part++) {
            float *one = parts.at(part * rows + blockIdx.x, first), scale = expf(one[dim] - most);
            sum = fmaf(scale, one[i % dim], sum), weight = fmaf(scale, one[dim + 1], weight);
        }
        *y.at(blockIdx.x, i) = narrow<T>(sum / weight);
    }
}

// attention_delta is Σ y·dy a row and head: a block a row, some lanes a head.
template <class T, bool WIDE> __device__ void delta(Matrix<T> y, Matrix<T> dy, Matrix<float> delta, i64 heads, i64 dim) {
    int lanes = lanesOf(dim), lane = threadIdx.x % lanes, each = blockDim.x / lanes;
    for (i64 base = 0; base < heads; base += each) {
        i64 head = base + threadIdx.x / lanes;
        float sum = 0;
        if (head < heads)
            for (i64 column = lane * 8; column < dim; column += lanes * 8) {
                Eight one = load<WIDE>(y.at(blockIdx.x, head * dim + column), dim - column), two = load<WIDE>(dy.at(blockIdx.x, head * dim + column), dim - column);
                EIGHT sum = fmaf(one.at[i], two.at[i], sum);
            }
        sum = lanesSum(sum, lanes);
        if (head < heads && lane == 0) *delta.at(blockIdx.x, head) = sum;
    }
}

#define KERNELS(CACHE, DECODE, JOIN, DELTA, T)                                                                                                      \
    extern "C" __global__ void CACHE(Matrix<T> k, Matrix<T> v, Matrix<T> keys, Matrix<T> values, i64 rows, i64 columns, i64 each, i64 positions,    \
                                     i64 seq, i64 past) {                                                                                           \
        Spot spot(rows, columns);                                                                                                                   \
        if (!spot.there || spot.row % each < each - positions) return;                                                                              \
        i64 to = spot.row / each * positions + (past >= 0 ? past : spot.row % seq) % positions;                                                     \
        if (k.wide() && v.wide() && keys.wide() && values.wide() && columns % 8 == 0) {                                                             \
            put<T, true>(k, keys, spot.row, spot.column, columns, to);                                                                              \
            put<T, true>(v, values, spot.row, spot.column, columns, to);                                                                            \
        } else {                                                                                                                                    \
            put<T, false>(k, keys, spot.row, spot.column, columns, to);                                                                             \
            put<T, false>(v, values, spot.row, spot.column, columns, to);                                                                           \
        }                                                                                                                                           \
    }                                                                                                                                               \
    extern "C" __global__ void __launch_bounds__(256) DECODE(Matrix<T> q, Matrix<T> keys, Matrix<T> values, Matrix<T> y, Matrix<float> parts,       \
                                                             i64 heads, i64 kv, i64 dim, i64 past, double scale, double cap, i64 positions, i64 span) { \
        __shared__ Shared block;                                                                                                                    \
        if (keys.wide() && values.wide() && dim % 8 == 0)                                                                                           \
            decode<T, true>(q, keys, values, y, parts, heads, kv, dim, past, scale, cap, positions, span, block);                                          \
        else                                                                                                                                        \
            decode<T, false>(q, keys, values, y, parts, heads, kv, dim, past, scale, cap, positions, span, block);                                         \
    }                                                                                                                                               \
    extern "C" __global__ void JOIN(Matrix<float> parts, Matrix<T> y, i64 rows, i64 heads, i64 dim, i64 count) { join(parts, y, rows, heads, dim, count); } \
    extern "C" __global__ void DELTA(Matrix<T> y, Matrix<T> dy, Matrix<float> sums, i64 heads, i64 dim) {                                           \
        if (y.wide() && dy.wide() && dim % 8 == 0) delta<T, true>(y, dy, sums, heads, dim);                                                         \
        else delta<T, false>(y, dy, sums, heads, dim);                                                                                              \
    }
KERNELS(cache_bf16, attention_decode_bf16, attention_join_bf16, attention_delta_bf16, bf16)
KERNELS(cache_f32, attention_decode_f32, attention_join_f32, attention_delta_f32, float)
