// attention_decode is attention of one query a sequence to its cache. A block has
// a span of its positions (blockIdx.x), up to eight heads of a group (blockIdx.y)
// and a sequence (blockIdx.z). It leaves Σ weight·value, the largest score and the
// sum of weights for attention_join, or there is one span and it is the output
// (Dao et al., Flash-Decoding, 2023).
#include "logits.h"

const int HEADS = 8, SPAN = 512, WIDEST = 256; // heads of a group that a block has, positions, values of a head
const int WARPS = 4, THREADS = 32 * WARPS;
#define NOTHING __int_as_float(0xff800000) // less than any score

// Task is what a block has to do.
template <class T> struct Task {
    Matrix<T> q, keys, values, y;
    Matrix<float> parts;
    i64 dim, sequence, head, column, row; // of the first head: its number, its column in keys; of the first position: its row
    int count, width;                     // heads, and positions that are written: others may be no number
    float scale, cap;

    __device__ Task(Matrix<T> q, Matrix<T> keys, Matrix<T> values, Matrix<T> y, Matrix<float> parts, i64 heads, i64 kv, i64 dim, i64 past,
                    double scale, double cap, i64 positions, i64 span)
        : q(q), keys(keys), values(values), y(y), parts(parts), dim(dim), sequence(blockIdx.z), scale((float)scale), cap((float)cap) {
        i64 shared = heads / kv, chunks = (shared + HEADS - 1) / HEADS, group = blockIdx.y / chunks, begin = blockIdx.y % chunks * HEADS;
        head = group * shared + begin, column = group * dim, row = sequence * positions + blockIdx.x * span;
        count = (int)min((i64)HEADS, shared - begin);
        width = (int)max(min(min(positions, past + 1) - (i64)blockIdx.x * span, span), 0ll);
    }
    __device__ float score(float product) const { return cap != 0 ? capped<float>(product * scale, cap) : product * scale; }
    // put is a value of one of the heads; with its first one go the score and the sum.
    __device__ void put(int h, i64 value, float made, float largest, float total) const {
        if (y.data) {
            *y.at(sequence, (head + h) * dim + value) = narrow<T>(made / total);
            return;
        }
        float *part = parts.at(blockIdx.x * (i64)gridDim.z + sequence, (head + h) * (dim + 2));
        part[value] = made;
        if (value == 0) part[dim] = largest, part[dim + 1] = total;
    }
};

// share is the factor from a sum made with one largest score to a sum with another.
__device__ inline float share(float most, float all) { return most == NOTHING ? 0 : __expf(most - all); }

// multiply adds the product of 16 × 16 and 16 × 8 values to 16 × 8 (PTX ISA,
// mma.m16n8k16). With g = lane/4 and t = lane%4 a lane has of the first factor
// rows g and g+8, of the second column g, at 2t, 2t+1 and 2t+8, 2t+9; of sums rows
// g and g+8, columns 2t and 2t+1.
__device__ inline void multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// crossed are two values in bf16 of rows and columns that are changed for one
// another between the lanes of a warp.
__device__ inline unsigned crossed(float first, float second) {
    unsigned result;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(bothHalves(second, first)));
    return result;
}

__device__ inline uint4 fetch(const bf16 *at, bool there) { return there ? *(const uint4 *)at : make_uint4(0, 0, 0, 0); }

struct Wide {
    uint4 queries[WIDEST / 32][32];
    float largest[WARPS][HEADS], total[WARPS][HEADS], made[HEADS][WIDEST + 4];
};

// acrossRows adds up or compares what lanes of one t have.
template <class F> __device__ float acrossRows(float value, F f) {
    _Pragma("unroll") for (int away = 4; away < 32; away *= 2) value = f(value, __shfl_xor_sync(~0u, value, away));
    return value;
}

// wideDecode: on tensor cores, keys and values as they come from memory, both as
// the first factor: scores are keys × queries, sums values × weights. The order of
// values in a product is free, so a lane reads eight in a row. A warp has every
// fourth 16 positions, and updates its largest score and its sums; those of
// the warps are added in their order. HALVES: a head has up to so many times 128
// values. A step's keys are on their way at once, and so are its values.
template <int HALVES> __device__ void wideDecode(const Task<bf16> &task, Wide &room) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, dim = (int)task.dim;
    for (int block = warp; block < HALVES * 4; block += WARPS) {
        int value = block * 32 + t * 8;
        room.queries[block][lane] = fetch(task.q.at(task.sequence, (task.head + g) * dim + value), g < task.count && value < dim);
    }
    __syncthreads();
    float most[2] = {NOTHING, NOTHING}, total[2] = {}, made[HALVES][2][4][4] = {}; // of heads 2t and 2t+1
    _Pragma("unroll 1") for (int base = warp * 16; base < task.width; base += WARPS * 16) {
        float score[4] = {}; // positions g and g+8 of the 16
        bool low = base + g < task.width, high = base + g + 8 < task.width;
        const bf16 *key = task.keys.at(task.row + base + g, task.column + t * 8), *other = key + 8 * task.keys.stride;
        const bf16 *value = task.values.at(task.row + base + 2 * t, task.column + g * 8);
        uint4 rows[2][4];
        auto fetchValues = [&](int half) {
            _Pragma("unroll") for (int block = 0; block < 2; block++)
                _Pragma("unroll") for (int k = 0; k < 4; k++) {
                    int position = k % 2 + k / 2 * 8, column = half * 128 + block * 64;
                    rows[block][k] = fetch(value + position * task.values.stride + column, base + 2 * t + position < task.width && column + g * 8 < dim);
                }
        };
        _Pragma("unroll") for (int half = 0; half < HALVES; half++) {
            uint4 one[4], two[4];
            _Pragma("unroll") for (int block = 0; block < 4; block++) {
                int column = half * 128 + block * 32;
                bool there = column + t * 8 < dim;
                one[block] = fetch(key + column, low && there), two[block] = fetch(other + column, high && there);
            }
            if (HALVES == 1) fetchValues(0); // a second half has no registers for it
            _Pragma("unroll") for (int block = 0; block < 4; block++) {
                uint4 query = room.queries[half * 4 + block][lane];
                multiply(score, one[block].x, two[block].x, one[block].y, two[block].y, query.x, query.y);
                multiply(score, one[block].z, two[block].z, one[block].w, two[block].w, query.z, query.w);
            }
        }
        _Pragma("unroll") for (int h = 0; h < 2; h++) {
            float first = low ? task.score(score[h]) : NOTHING, second = high ? task.score(score[2 + h]) : NOTHING;
            float all = fmaxf(most[h], acrossRows(fmaxf(first, second), fmaxf)), before = share(most[h], all);
            score[h] = low ? __expf(first - all) : 0, score[2 + h] = high ? __expf(second - all) : 0;
            most[h] = all, total[h] = total[h] * before + score[h] + score[2 + h];
            for (auto &half : made)
                for (auto &block : half)
                    for (auto &pair : block) pair[h] *= before, pair[2 + h] *= before;
        }
        unsigned b0 = crossed(score[0], score[1]), b1 = crossed(score[2], score[3]);
        _Pragma("unroll") for (int half = 0; half < HALVES; half++) {
            if (HALVES > 1) fetchValues(half);
            _Pragma("unroll") for (int block = 0; block < 2; block++)
                _Pragma("unroll") for (int p = 0; p < 4; p++) {
                    auto of = [&](int k) { return p == 0 ? rows[block][k].x : p == 1 ? rows[block][k].y : p == 2 ? rows[block][k].z : rows[block][k].w; };
                    multiply(made[half][block][p], __byte_perm(of(0), of(1), 0x5410), __byte_perm(of(0), of(1), 0x7632),
                             __byte_perm(of(2), of(3), 0x5410), __byte_perm(of(2), of(3), 0x7632), b0, b1);
                }
        }
    }
    _Pragma("unroll") for (int h = 0; h < 2; h++) {
        total[h] = acrossRows(total[h], [](float one, float two) { return one + two; });
        if (g == 0) room.largest[warp][2 * t + h] = most[h], room.total[warp][2 * t + h] = total[h];
    }
    __syncthreads();
    float factor[2];
    _Pragma("unroll") for (int h = 0; h < 2; h++) {
        float all = NOTHING;
        for (int other = 0; other < WARPS; other++) all = fmaxf(all, room.largest[other][2 * t + h]);
        factor[h] = share(most[h], all);
    }
    _Pragma("unroll 1") for (int turn = 0; turn < WARPS; turn++) {
        if (turn == warp)
            _Pragma("unroll") for (int block = 0; block < HALVES * 2; block++) if (block * 64 + g * 8 < dim)
                _Pragma("unroll") for (int i = 0; i < 16; i++) { // value 2p of both heads, then 2p+1
                    float &sum = room.made[2 * t + i % 2][block * 64 + g * 8 + i / 2], more = made[block / 2][block % 2][i / 4][i % 4] * factor[i % 2];
                    sum = turn ? sum + more : more;
                }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < task.count * dim; i += blockDim.x) {
        int h = i / dim;
        float all = NOTHING, sum = 0;
        for (int other = 0; other < WARPS; other++) all = fmaxf(all, room.largest[other][h]);
        for (int other = 0; other < WARPS; other++) sum += room.total[other][h] * share(room.largest[other][h], all);
        task.put(h, i % dim, room.made[h][i % dim], all, sum);
    }
}

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

#define DECODE(NAME, T, BODY)                                                                                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS, 4) NAME(Matrix<T> q, Matrix<T> keys, Matrix<T> values, Matrix<T> y, Matrix<float> parts,         \
                                                           i64 heads, i64 kv, i64 dim, i64 past, double scale, double cap, i64 positions, i64 span) { \
        __shared__ union { Wide wide; Plain plain; } room;                                                                                          \
        Task<T> task(q, keys, values, y, parts, heads, kv, dim, past, scale, cap, positions, span);                                                 \
        BODY                                                                                                                                        \
    }
DECODE(attention_decode_bf16, bf16, bool wide = q.wide() && keys.wide() && values.wide() && dim % 8 == 0;
       if (wide && dim <= 128) wideDecode<1>(task, room.wide); else if (wide) wideDecode<2>(task, room.wide); else plainDecode(task, room.plain);)
DECODE(attention_decode_f32, float, plainDecode(task, room.plain);)

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
