// Attention of one query a sequence to its cache, on tensor cores.
#pragma once
#include "logits.h"

const int HEADS = 8, SPAN = 512, WIDEST = 256; // heads of a group that a block has, positions, values of a head
#define NOTHING __int_as_float(0xff800000) // less than any score

// Span is a task's place: the number of its span of positions, its heads, its sequence;
// and how many sequences there are.
struct Span { i64 span, heads, sequence, sequences; };

// Task is what a team of warps has to do.
template <class T> struct Task {
    Matrix<T> q, keys, values, y;
    Matrix<float> parts;
    i64 dim, sequence, head, column, row; // of the first head: its number, its column in keys; of the first position: its row
    i64 part, sequences;
    int count, width;                     // heads, and positions that are written: others may be no number
    float scale, cap;

    __device__ Task() {}
    __device__ Task(Matrix<T> q, Matrix<T> keys, Matrix<T> values, Matrix<T> y, Matrix<float> parts, i64 heads, i64 kv, i64 dim, i64 past,
                    double scale, double cap, i64 positions, i64 span, Span place)
        : q(q), keys(keys), values(values), y(y), parts(parts), dim(dim), sequence(place.sequence), part(place.span), sequences(place.sequences), scale((float)scale), cap((float)cap) {
        i64 shared = heads / kv, chunks = (shared + HEADS - 1) / HEADS, group = place.heads / chunks, begin = place.heads % chunks * HEADS;
        head = group * shared + begin, column = group * dim, row = sequence * positions + part * span;
        count = (int)min((i64)HEADS, shared - begin);
        width = (int)max(min(min(positions, past + 1) - part * span, span), 0ll);
    }
    __device__ float score(float product) const { return cap != 0 ? capped<float>(product * scale, cap) : product * scale; }
    // put is a value of one of the heads; with its first one go the score and the sum.
    __device__ void put(int h, i64 value, float made, float largest, float total) const {
        if (y.data) {
            *y.at(sequence, (head + h) * dim + value) = narrow<T>(made / total);
            return;
        }
        float *to = parts.at(part * sequences + sequence, (head + h) * (dim + 2));
        to[value] = made;
        if (value == 0) to[dim] = largest, to[dim + 1] = total;
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

__device__ inline uint4 fetch(const bf16 *at, bool there) { return there ? fresh(at) : make_uint4(0, 0, 0, 0); }

// Wide is the room of wideDecode. The warps' sums are added up for AT values at a time.
template <int WARPS, int HALVES, int AT = HALVES * 128> struct Wide {
    uint4 queries[HALVES * 4][32];
    float largest[WARPS][HEADS], total[WARPS][HEADS], made[WARPS][HEADS][AT + 4];
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
// values. A step's keys are on their way at once, and so are its values. meet is the
// barrier of the WARPS.
template <int HALVES, int WARPS, int AT, class Meet> __device__ void wideDecode(const Task<bf16> &task, Wide<WARPS, HALVES, AT> &room, Meet meet) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4, dim = (int)task.dim;
    for (int block = warp; block < HALVES * 4; block += WARPS) {
        int value = block * 32 + t * 8;
        room.queries[block][lane] = fetch(task.q.at(task.sequence, (task.head + g) * dim + value), g < task.count && value < dim);
    }
    meet();
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
    meet();
    float factor[2];
    _Pragma("unroll") for (int h = 0; h < 2; h++) {
        float all = NOTHING;
        for (int other = 0; other < WARPS; other++) all = fmaxf(all, room.largest[other][2 * t + h]);
        factor[h] = share(most[h], all);
    }
    _Pragma("unroll") for (int first = 0; first < HALVES * 128; first += AT) {
        int width = min(AT, dim - first);
        if (width <= 0) break;
        if (first > 0) meet();
        _Pragma("unroll") for (int block = first / 64; block < (first + AT) / 64; block++) if (block * 64 + g * 8 < dim)
            _Pragma("unroll") for (int i = 0; i < 16; i++) // value 2p of both heads, then 2p+1
                room.made[warp][2 * t + i % 2][block * 64 - first + g * 8 + i / 2] = made[block / 2][block % 2][i / 4][i % 4] * factor[i % 2];
        meet();
        for (int i = threadIdx.x; i < task.count * width; i += WARPS * 32) {
            int h = i / width;
            float all = NOTHING, sum = 0, value = 0;
            for (int other = 0; other < WARPS; other++) all = fmaxf(all, room.largest[other][h]);
            for (int other = 0; other < WARPS; other++) sum += room.total[other][h] * share(room.largest[other][h], all);
            for (int other = 0; other < WARPS; other++) value += room.made[other][h][i % width];
            task.put(h, first + i % width, value, all, sum);
        }
    }
}
