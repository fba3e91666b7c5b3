// What attention's kernels for Hopper share: tiles in shared memory, products of a team
// of four warps (wgmma), and the barriers between those that fetch and those that
// multiply. A tile is some rows of 64 values side by side, a pile of such for wider heads;
// its chunks of 16 bytes are exchanged within a row as wgmma's 128-byte swizzle has them
// (PTX ISA, wgmma, matrix layouts).
#pragma once
#define UNROLL _Pragma("unroll")

typedef unsigned short bf16;
typedef long long i64;

const float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;
#define NEVER __int_as_float(0xff800000) // the score of a key that is not seen

__device__ inline unsigned place(const void *at) { return (unsigned)__cvta_generic_to_shared(at); }

__device__ inline float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline float logarithm(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline unsigned pair(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// Gate is a barrier in shared memory that counts arrivals in rounds.
struct Gate {
    unsigned at;
    __device__ void begin(int count) const { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(count) : "memory"); }
    __device__ void arrive() const { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
    __device__ bool past(unsigned round) const {
        unsigned done;
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(round) : "memory");
        return done;
    }
    __device__ void await(unsigned round) const {
        while (!past(round)) {}
    }
};

// Ring is slots that are filled and emptied in turn.
template <int COUNT> struct Ring {
    unsigned full, data, bytes; // its gates: full ones, then empty ones
    int slot;
    unsigned round;
    __device__ Ring(unsigned full, unsigned data, unsigned bytes) : full(full), data(data), bytes(bytes), slot(0), round(0) {}
    __device__ Gate come() const { return Gate{full + slot * 8}; }
    __device__ Gate gone() const { return Gate{full + (COUNT + slot) * 8}; }
    __device__ unsigned at() const { return data + slot * bytes; }
    __device__ void next() {
        if (++slot == COUNT) slot = 0, round ^= 1;
    }
    __device__ void begin(int fetchers, int readers) const {
        for (int i = 0; i < COUNT; i++) Gate{full + i * 8}.begin(fetchers), Gate{full + (COUNT + i) * 8}.begin(readers);
    }
    __device__ void await() const { come().await(round); }
    // release is for a warp that has read the slot.
    __device__ void release() const {
        if (threadIdx.x % 32 == 0) gone().arrive();
    }
};

__device__ inline void teamMeet(int name, int threads) { asm volatile("bar.sync %0, %1;" ::"r"(name), "r"(threads) : "memory"); }
__device__ inline void teamArrive(int name, int threads) { asm volatile("bar.arrive %0, %1;" ::"r"(name), "r"(threads) : "memory"); }

#define PILE(WIDE) ((WIDE + 63) / 64) // tiles of a row; the last one's columns behind the width are 0

// Map describes a tensor of values × rows × heads × sequences to the copy engine, which writes
// tiles with wgmma's 128-byte swizzle. Rows behind a sequence become 0.
struct alignas(64) Map {
    char data[128];
};

// fill copies ROWS rows of a head to a ring's next slot, when readers have left it. One thread does it.
template <int ROWS, int WIDE, class R> __device__ inline void fill(R &ring, const Map *map, int row, int head, int sequence) {
    ring.gone().await(ring.round ^ 1);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ring.come().at), "r"(ROWS * PILE(WIDE) * 128) : "memory");
    UNROLL for (int tile = 0; tile < PILE(WIDE); tile++)
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(ring.at() + tile * ROWS * 128), "l"(map), "r"(tile * 64), "r"(row), "r"(head),
                     "r"(sequence), "r"(ring.come().at) : "memory");
    ring.next();
}

// The low word of a descriptor, which makes tiles a factor of a product. A product has steps of 16
// values. rows: the rows of a tile of the pile.
//   upright: a row of the product is a row of the tile, and a step is 16 values of the row.
//   turned:  a row of the product is a column of the tile, and a step is 16 rows.
__device__ inline unsigned upright(unsigned at) { return at >> 4 | 1 << 16; }
__device__ inline unsigned turned(unsigned at, int rows) { return at >> 4 | rows << 19; }
__device__ inline unsigned long long described(unsigned low) { return (unsigned long long)(64 | 1 << 30) << 32 | low; }

__device__ inline void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void send() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ inline void finish() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }
template <int N> __device__ inline void hold(float (&sum)[N]) {
    UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+f"(sum[i])::"memory");
}
template <int N> __device__ inline void hold(unsigned (&part)[N]) {
    UNROLL for (int i = 0; i < N; i++) asm volatile("" : "+r"(part[i])::"memory");
}

#define FOUR(D, I) "+f"(D[I]), "+f"(D[I + 1]), "+f"(D[I + 2]), "+f"(D[I + 3])
#define EIGHT(D, I) FOUR(D, I), FOUR(D, I + 4)
#define SIXTEEN(D, I) EIGHT(D, I), EIGHT(D, I + 8)
#define SUMS32(D) SIXTEEN(D, 0), SIXTEEN(D, 16)
#define SUMS40(D) SUMS32(D), EIGHT(D, 32)
#define SUMS48(D) SUMS32(D), SIXTEEN(D, 32)
#define SUMS64(D) SUMS48(D), SIXTEEN(D, 48)
#define SUMS128(D) SUMS64(D), SIXTEEN(D, 64), SIXTEEN(D, 80), SIXTEEN(D, 96), SIXTEEN(D, 112)
#define NAMES32 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES40 NAMES32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define NAMES48 NAMES40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define NAMES64 NAMES48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES128 NAMES64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

// multiply adds the product of 64 × 16 and 16 × N values to sums of 64 × N. With keep 0 it replaces
// the sums. A descriptor gives the second factor, turned with TURN 1. The first factor has a descriptor
// too, or is in registers. A lane has sums of two of its warp's 16 rows: lane/4 and lane/4 + 8. Of
// each 8 columns it has 2·(lane%4) and the next.
#define MULTIPLY(COUNT, COLUMNS, I, J, K, L, M, N, O) \
    template <int TURN> __device__ inline void multiply(float (&d)[COUNT], unsigned long long a, unsigned long long b, int keep) { \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #K ", 0; wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32.bf16.bf16 {" NAMES##COUNT "}, %" #I ", %" #J ", p, 1, 1, 0, %" #L "; }" \
            : SUMS##COUNT(d) : "l"(a), "l"(b), "r"(keep), "n"(TURN)); \
    } \
    template <int TURN> __device__ inline void multiply(float (&d)[COUNT], const unsigned *a, unsigned long long b, int keep) { \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #N ", 0; wgmma.mma_async.sync.aligned.m64n" #COLUMNS "k16.f32.bf16.bf16 {" NAMES##COUNT "}, {%" #I ", %" #J ", %" #K ", %" #L "}, %" #M ", p, 1, 1, %" #O "; }" \
            : SUMS##COUNT(d) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep), "n"(TURN)); \
    }
MULTIPLY(32, 64, 32, 33, 34, 35, 36, 37, 38)
MULTIPLY(40, 80, 40, 41, 42, 43, 44, 45, 46)
MULTIPLY(48, 96, 48, 49, 50, 51, 52, 53, 54)
MULTIPLY(64, 128, 64, 65, 66, 67, 68, 69, 70)
MULTIPLY(128, 256, 128, 129, 130, 131, 132, 133, 134)

// across sets sum to a·bᵀ: 64 rows of a pile of tiles, and all rows of another.
template <int WIDE, int N> __device__ inline void across(float (&sum)[N], unsigned a, int aRows, unsigned b, int bRows) {
    unsigned one = upright(a), other = upright(b);
    UNROLL for (int step = 0; step < WIDE / 16; step++)
        multiply<0>(sum, described(one + step / 4 * aRows * 8 + step % 4 * 2), described(other + step / 4 * bRows * 8 + step % 4 * 2), step > 0);
}

// along adds weights · b, rows of tiles weighted by what is in registers.
template <int K, int N> __device__ inline void along(float (&sum)[N], const unsigned (&weight)[K / 4], unsigned b, int keep) {
    unsigned other = turned(b, K);
    UNROLL for (int step = 0; step < K / 16; step++) multiply<1>(sum, weight + step * 4, described(other + step * 128), step > 0 ? 1 : keep);
}

// narrowed is a block of sums as the first factor of a product.
template <int N> __device__ inline void narrowed(unsigned (&to)[N / 2], const float (&from)[N]) {
    UNROLL for (int i = 0; i < N / 2; i++) to[i] = pair(from[2 * i], from[2 * i + 1]);
}

// store writes rows of a block of sums in bf16. One of the lane's rows is multiplied by low, the other by high.
template <int N> __device__ inline void store(bf16 *to, i64 stride, const float (&sum)[N], float low, float high, int valid) {
    int lane = threadIdx.x % 32, t = lane % 4, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    UNROLL for (int half = 0; half < 2; half++) {
        float factor = half ? high : low;
        UNROLL for (int block = 0; block < N / 16; block++) {
            unsigned part[4];
            UNROLL for (int i = 0; i < 4; i++) part[i] = pair(sum[(block * 4 + i) * 4 + half * 2] * factor, sum[(block * 4 + i) * 4 + half * 2 + 1] * factor);
            // Lanes of a row have a pair of each 8 columns; after two exchanges lane t has all of the t-th.
            UNROLL for (int i = 0; i < 4; i += 2) {
                unsigned other = __shfl_xor_sync(~0u, t & 1 ? part[i] : part[i + 1], 1);
                if (t & 1) part[i] = other;
                else part[i + 1] = other;
            }
            UNROLL for (int i = 0; i < 2; i++) {
                unsigned other = __shfl_xor_sync(~0u, t & 2 ? part[i] : part[i + 2], 2);
                if (t & 2) part[i] = other;
                else part[i + 2] = other;
            }
            if (row + half * 8 < valid) *(uint4 *)(to + (row + half * 8) * stride + block * 32 + t * 8) = make_uint4(part[0], part[1], part[2], part[3]);
        }
        UNROLL for (int i = N / 16 * 16; i < N; i += 4)
            if (row + half * 8 < valid) *(unsigned *)(to + (row + half * 8) * stride + i * 2 + t * 2) = pair(sum[i + half * 2] * factor, sum[i + half * 2 + 1] * factor);
    }
}

// Task is a block of queries or keys of a head. Tasks are blocks × pairs of a head and a sequence. The
// longest block of all pairs comes first: pairs walk over the same rows at the same time, which
// then are in the L2 cache.
struct Task {
    int first, head;
    i64 token;
};

// QueryWalk has a task for each ROWS queries of a head.
template <int ROWS> struct QueryWalk {
    int blocks, pairs, count;
    template <class C> __device__ QueryWalk(const C &call, int pairs) : blocks((call.seq + ROWS - 1) / ROWS), pairs(pairs), count(blocks * pairs) {}
    template <class C> __device__ Task of(const C &call, int number) const {
        int block = number / pairs, pair = number - block * pairs, sequence = pair / call.heads;
        return Task{(blocks - 1 - block) * ROWS, pair - sequence * call.heads, (i64)sequence * call.seq};
    }
};

// after is the number of a block's next task. Every other round goes backwards, so that no block has
// the longest of each round.
__device__ inline int after(int number) {
    int round = number / (int)gridDim.x;
    return (2 * round + 2) * (int)gridDim.x - 1 - number;
}

// Mask says which keys a query sees: those before query + ahead, and none before query - behind.
struct Mask {
    int seq, ahead, behind;
    __device__ Mask(int seq, int causal, int window) : seq(seq), ahead(causal ? 1 : 1 << 29), behind(window > 0 ? window - 1 : 1 << 29) {}
    // The keys [low, high) that a query sees, and the queries that see a key.
    __device__ void keys(int query, int &low, int &high) const { low = query - behind, high = min(query + ahead, seq); }
    __device__ void queries(int key, int &low, int &high) const { low = key - ahead + 1, high = min(key + behind + 1, seq); }
};

// Span is the blocks [begin, end) that a block of the other side meets. In those of [whole, rest),
// every query sees every key.
struct Span {
    int begin, whole, rest, end;
    __device__ Span(int low, int lowWhole, int highWhole, int high, int size)
        : begin(max(low, 0) / size), whole((max(lowWhole, 0) + size - 1) / size), rest(highWhole / size), end((high + size - 1) / size) {}
    __device__ bool masked(int block) const { return block < whole || block >= rest; }
};
template <int ROWS, int OTHERS> __device__ inline Span keysOf(const Mask &mask, int first) {
    int low, lowWhole, highWhole, high;
    mask.keys(first, low, highWhole), mask.keys(first + ROWS - 1, lowWhole, high);
    return Span(low, lowWhole, highWhole, high, OTHERS);
}
template <int ROWS, int OTHERS> __device__ inline Span queriesOf(const Mask &mask, int first) {
    int low, lowWhole, highWhole, high;
    mask.queries(first, low, highWhole), mask.queries(first + ROWS - 1, lowWhole, high);
    return Span(low, lowWhole, highWhole, high, OTHERS);
}

// cover writes value to a lane's row in the columns outside [low, high). The first column is start.
template <int N> __device__ inline void cover(float (&block)[N], int half, int low, int high, int start, float value) {
    int t = threadIdx.x % 4;
    low -= start + 2 * t, high -= start + 2 * t;
    UNROLL for (int i = 0; i < N / 2; i++) {
        int column = i / 2 * 8 + i % 2;
        if (column < low || column >= high) block[i / 2 * 4 + half * 2 + i % 2] = value;
    }
}
