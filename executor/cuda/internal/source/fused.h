// What kernel fused is made of: operations of a decode step, and how the warps of a
// block share them. Compile it for sm_90: copies are bulk copies (PTX ISA 8.0).
#pragma once
#include "activation.h"
#include "attend.h"
#include "rotation.h"

// The warps of a block: MULTIPLY compute, one fetches weights, one x, and FINISH finish
// what the first have made, each for FOURS times four rows.
const int ROWS = 16, DEEPEST = 16; // rows of x, slots
const int MULTIPLY = 8, WORKERS = MULTIPLY * 32, WEIGHTS = MULTIPLY, VALUES = MULTIPLY + 1;
const int FINISH = 2, FOURS = ROWS / 4 / FINISH, FUSED = WORKERS + (2 + FINISH) * 32;
// A slot has LENGTH values of 16 rows of weights. An x that is not staged has slots of
// its own, PIECES, whose rows are APART bytes apart, so that two that are read at a time
// lie in other banks.
const int LENGTH = 1024, APART = LENGTH * 2 + 64, PIECES = 2;
// UNDERWAY is how many slots are copied at a time. With more of them, whatever else a block
// reads or writes waits longer.
const int UNDERWAY = 2;

// weightsApart is the distance of a slot's rows of weights, in bytes. Copies to multiples
// of 128 bytes are faster, but such rows lie in the same banks. With more than eight rows
// of x, reading them costs more than the copies gain.
__device__ constexpr int weightsApart(bool wide) { return wide ? APART : LENGTH * 2; }

// Part is a weight with its rows, and where its columns of the result go.
struct Part {
    const bf16 *weight, *bias;
    bf16 *to;
    i64 stride, apart, rows; // of weight's rows and of the result's, in values
};

enum Kind { PLAIN, GATED, TURNED, ATTEND, JOIN, PICK };

// Op is an operation. Products have x of rows × inner values, with the weight of its
// norm or none, and up to three parts: tiles of 16 columns follow each other. PLAIN
// adds add. GATED has a gate and what it is multiplied with, and turns TURNED has of
// all values of heads: queries, keys and values, of which the last two go to the cache.
// PICK finds the columns of the largest results of the PLAIN before it, which leaves
// those of each block in sums.
struct Op {
    i64 kind, tiles, first; // first: the block that has the first tile
    i64 rows, inner, xStride, addStride, staged, gemma, activation, positions;
    double epsilon;
    const bf16 *x, *norm, *add;
    Part parts[3];
    i64 past;            // the prompt's length
    const float *turn;   // radians a position, of the first half of a head
    Matrix<bf16> q, keys, values, y; // of ATTEND and JOIN
    Matrix<float> sums;              // of PICK: a number and its column of each block
    i64 heads, kv, dim, span, spans;
    double scale, cap;
    double factor; // of cosines and sines
    int *ids;      // of PICK
    // PICK also writes the ids to the host, of odd positions ROWS words later, and what it
    // finds in the logits of parts[0] as kernel finite does, with logits as that area.
    int *said;
    u64 *found;
    i64 area, spare;
};
static_assert(sizeof(Op) % 16 == 0, "it is copied 16 bytes at a time");

// timesWeights adds 16 rows of weights times eight rows of x, 32 values long (PTX ISA,
// mma.m16n8k16, twice). With g = lane/4 and t = lane%4 a lane has values 8t to 8t+7 of
// rows g and g+8 of weights and of row g of x, and sums of rows g and g+8 with rows 2t
// and 2t+1 of x.
__device__ inline void timesWeights(float (&sum)[4], uint4 low, uint4 high, uint4 x) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(low.x), "r"(high.x), "r"(low.y), "r"(high.y), "r"(x.x), "r"(x.y));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(low.z), "r"(high.z), "r"(low.w), "r"(high.w), "r"(x.z), "r"(x.w));
}

// A Gate is passed once so many arrived and so many bytes came (PTX ISA, mbarrier).
struct Gate {
    u64 state;
    __device__ unsigned at() const { return (unsigned)__cvta_generic_to_shared(&state); }
    __device__ void init(unsigned count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at()), "r"(count) : "memory"); }
    __device__ void arrive() { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at()) : "memory"); }
    __device__ void expect(unsigned bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at()), "r"(bytes) : "memory"); }
    __device__ void await(unsigned parity) {
        for (unsigned passed = 0; !passed;)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(passed) : "r"(at()), "r"(parity) : "memory");
    }
    // copy has rows of x or of weights come to shared memory, up to MOST: bytes of each, a
    // multiple of 16. One lane copies them all: for copies of several lanes the compiler
    // makes a loop that looks for the next lane.
    template <int MOST> __device__ void copy(char *room, int apart, const bf16 *from, i64 stride, int count, unsigned bytes) {
        unsigned to = (unsigned)__cvta_generic_to_shared(room);
        _Pragma("unroll") for (int i = 0; i < MOST; i++, to += apart, from += stride)
            if (i < count) asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(at()) : "memory");
    }
};

// elected is true for one lane of a warp, and the compiler knows that there is only one.
__device__ inline bool elected() {
    unsigned is;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(is));
    return is;
}

// firstOf is a block's first tile.
__device__ inline int firstOf(const Op &op) { return (int)((blockIdx.x + gridDim.x - (unsigned)op.first) % gridDim.x); }

// partOf is the part of a tile, and the tile's place in it.
__device__ inline int partOf(const Op &op, int &tile) {
    int part = 0;
    if (op.kind != GATED)
        for (int count; part < 2 && tile >= (count = ((int)op.parts[part].rows + 15) / 16); part++) tile -= count;
    return part;
}

// columnOf is the first of eight columns of a part: of a tile's place and one of its
// two groups. TURNED has values that turn with each other in a tile.
__device__ inline int columnOf(const Op &op, int place, int group) {
    if (op.kind == GATED) return place * 8;
    if (op.kind == PLAIN) return place * 16 + group * 8;
    int dim = (int)op.dim, half = dim / 2, pairs = half / 8;
    return place / pairs * dim + place % pairs * 8 + group * half;
}

// Best is the first of the largest numbers seen, and its column: like argmax of logits.cu.
// BAD is added to the column if a value was NaN or infinite.
const unsigned BAD = 1u << 31;
struct Best {
    float value;
    int column;
    __device__ static Best none() { return {NOTHING, 0x7fffffff}; }
    __device__ void add(float other, int at) {
        if (other > value || (other == value && at < column)) value = other, column = at;
    }
    // over adds what lanes of a warp have that are up to so many away, a power of two.
    __device__ void over(int lanes) {
        for (int away = lanes / 2; away > 0; away /= 2) {
            float other = __shfl_xor_sync(~0u, value, away);
            add(other, __shfl_xor_sync(~0u, column, away));
        }
    }
};

// A Grid is a barrier of all blocks: each arrives once for every operation of every
// launch. Behind it is the number of the launch, from 1.
struct Grid {
    unsigned *arrived, launch, before;
    __device__ Grid(unsigned *arrived, i64 count) : arrived(arrived), launch(arrived[1]), before((launch - 1) * (unsigned)count * gridDim.x) {}
    __device__ void arrive() {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
    }
    __device__ void await(unsigned operations) {
        unsigned now;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
        while ((int)(now - before - operations * gridDim.x) < 0);
    }
};

__device__ inline void workersMeet() { asm volatile("bar.sync 1, 256;" ::: "memory"); }

// copyLater copies 16 bytes that lie in the L2 cache to shared memory, without waiting.
__device__ inline void copyLater(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

// Ops are the operations as a team of warps reads them, one ahead: a warp of the team
// copies, of which thread is a thread's number.
struct Ops {
    const Op *from;
    i64 count;
    Op *room; // of two
    int thread;
    __device__ void fetch(i64 number) {
        if (thread >= 0 && thread < (int)(sizeof(Op) / 16) && number < count) copyLater((uint4 *)&room[number % 2] + thread, (const uint4 *)(from + number) + thread);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    // get is an operation, after meet; the team must have done with the one before.
    template <class Meet> __device__ const Op &get(i64 number, Meet meet) {
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        meet();
        fetch(number + 1);
        return room[number % 2];
    }
};
