// attention_decode is attention of one query a sequence to its cache. A block has
// a span of its positions (blockIdx.x), up to eight heads of a group (blockIdx.y)
// and a sequence (blockIdx.z). It leaves Σ weight·value, the largest score and the
// sum of weights for attention_join, or there is one span and it is the output
// (Dao et al., Flash-Decoding, 2023).
#include "attend.h"

const int WARPS = 4, THREADS = 32 * WARPS;

struct Plain { float query[WIDEST], scores[SPAN], made[THREADS], room[2][32]; };

// plainDecode is for fp32 and for rows that are not wide: one head after another,
// a warp a position, then a thread a value, of as many as there are threads.
template <class T> __device__ void plainDecode(const Task<T> &task, Plain &room) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, dim = (int)task.dim;
    _Pragma("unroll 1") for (int h = 0; h < task.count; h++) {
        __syncthreads();
        for (int i = threadIdx.x; i < dim; i += THREADS) room.query[i] = widen(*task.q.at(task.sequence, (task.head + h) * dim + i));
        __syncthreads();
        _Pragma("unroll 1") for (int at = warp; at < task.width; at += WARPS) {
            const T *key = task.keys.at(task.row + at, task.column);
            float sum = 0;
            _Pragma("unroll 4") for (int i = lane; i < dim; i += 32) sum = fmaf(widen(key[i]), room.query[i], sum);
            sum = warpSum(sum);
            if (lane == 0) room.scores[at] = task.score(sum);
        }
        __syncthreads();
        float most = NOTHING, total = 0;
        for (int at = threadIdx.x; at < task.width; at += THREADS) most = fmaxf(most, room.scores[at]);
        most = blockMax(most, room.room[0]);
        for (int at = threadIdx.x; at < task.width; at += THREADS) total += room.scores[at] = expf(room.scores[at] - most);
        total = blockSum(total, room.room[1]);
        _Pragma("unroll 1") for (int first = 0; first < dim; first += THREADS) {
            int values = min(dim - first, THREADS), slices = THREADS / values, slice = threadIdx.x / values, value = first + threadIdx.x % values;
            float sum = 0;
            if (slice < slices)
                _Pragma("unroll 4") for (int at = slice; at < task.width; at += slices)
                    sum = fmaf(room.scores[at], widen(*task.values.at(task.row + at, task.column + value)), sum);
            __syncthreads();
            room.made[threadIdx.x] = sum;
            __syncthreads();
            if (slice > 0) continue;
            for (int other = 1; other < slices; other++) sum += room.made[other * values + threadIdx.x];
            task.put(h, value, sum, most, total);
        }
    }
}

union Room { Wide<WARPS, 1> one; Wide<WARPS, 2> two; Plain plain; };

__device__ inline void decode(const Task<float> &task, Room &room) { plainDecode(task, room.plain); }
__device__ inline void decode(const Task<bf16> &task, Room &room) {
    auto meet = [] { __syncthreads(); };
    bool wide = task.q.wide() && task.keys.wide() && task.values.wide() && task.dim % 8 == 0;
    if (wide && task.dim <= 128) wideDecode<1>(task, room.one, meet);
    else if (wide) wideDecode<2>(task, room.two, meet);
    else plainDecode(task, room.plain);
}

#define DECODE(NAME, T)                                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, 4) NAME(Matrix<T> q, Matrix<T> keys, Matrix<T> values, Matrix<T> y, Matrix<float> parts,       \
                                                                  i64 heads, i64 kv, i64 dim, Place past, double scale, double cap, i64 positions, i64 span) { \
        __shared__ Room room;                                                                                                                           \
        decode(Task<T>(q, keys, values, y, parts, heads, kv, dim, past.get(), scale, cap, positions, span,                                              \
                       Span{blockIdx.x, blockIdx.y, blockIdx.z, gridDim.z}), room);                                                                     \
    }
DECODE(attention_decode_bf16, bf16)
DECODE(attention_decode_f32, float)

// attention_join joins the parts of each head in their order: a block a row, a
// thread a value.
template <class T> __device__ void join(Matrix<float> parts, Matrix<T> y, i64 rows, i64 heads, i64 dim, i64 count) {
    for (i64 i = threadIdx.x; i < heads * dim; i += blockDim.x) {
        i64 first = i / dim * (dim + 2);
        float most = NOTHING, sum = 0, weight = 0;
        for (i64 part = 0; part < count; part++) most = fmaxf(most, *parts.at(part * rows + blockIdx.x, first + dim));
        for (i64 part = 0; part < count; part++) {
            float *one = parts.at(part * rows + blockIdx.x, first), scale = expf(one[dim] - most);
            sum = fmaf(scale, one[i % dim], sum), weight = fmaf(scale, one[dim + 1], weight);
        }
        *y.at(blockIdx.x, i) = narrow<T>(sum / weight);
    }
}

extern "C" __global__ void attention_join_bf16(Matrix<float> parts, Matrix<bf16> y, i64 rows, i64 heads, i64 dim, i64 count) { join(parts, y, rows, heads, dim, count); }
extern "C" __global__ void attention_join_f32(Matrix<float> parts, Matrix<float> y, i64 rows, i64 heads, i64 dim, i64 count) { join(parts, y, rows, heads, dim, count); }
