// Attention backward on Hopper, in one pass: the gradients of keys and values are sums over the
// heads that share them. With splits, a sum is over some of these heads. Blocks of keys walk over
// blocks of queries. Scores have their keys in rows, so that weights go into the next products from
// registers. Two teams of warps make weights, gradients of scores, and those of keys and values: each
// of 64 keys, or of wide heads one team the gradients of values and one those of keys. A third team
// makes the gradients of queries. Only it waits for shares.
//
// A block of queries gets its gradient from all blocks of keys that it sees. Their shares are added
// in fp32, in the order of the keys, so that every run has the same bits: turns counts
// the shares that are there. One thread waits for a block's turn, and one announces the next turn.
// The last share makes the sum bf16.
#include "hopper.h"

const bool WIDE = WIDTH > 128;
const int KEYS = WIDE ? 64 : 128, QUERIES = WIDTH == 64 ? 128 : 64;
// The third team multiplies in parts, of which a thread has so many sums. HALF: a wide head's half in sums of a thread.
const int PARTS = WIDTH % 64 ? 1 : WIDTH == 64 ? 2 : WIDTH / 64, PART = QUERIES * WIDTH / PARTS / 128, HALF = WIDE ? WIDTH / 4 : 64;
const int Q_BYTES = QUERIES * PILE(WIDTH) * 128, K_BYTES = KEYS * PILE(WIDTH) * 128, S_BYTES = QUERIES * KEYS * 2;
extern "C" __constant__ const int SHARED = 2 * OWN * K_BYTES + 2 * SLOTS * (Q_BYTES + QUERIES * 4) + (WIDE ? 4 : 2) * S_BYTES + (OWN + SLOTS + 4) * 32;

struct Call {
    const Map *q, *k, *v, *dy;
    const float *lse, *delta;
    bf16 *dq, *dk, *dv;
    float *parts, *sums;
    int *turns;
    int dqStride, dkStride, dvStride, seq, heads, group, splits;
    Mask mask;
    float scale, unit;
    unsigned lines, slopes, weights;
};

struct Walk {
    int pairs, count, shares, members, blocks, period;
    bool even;
    __device__ Walk(const Call &call, int heads)
        : pairs(heads / call.group * call.splits), count((call.seq + KEYS - 1) / KEYS * pairs), shares(call.heads / call.group), members(call.group / call.splits),
          blocks((call.seq + QUERIES - 1) / QUERIES), period((min(call.mask.behind, call.seq) + KEYS + QUERIES - 1) / QUERIES), even(call.mask.ahead > 1 || call.mask.behind < call.seq) {}
    // even: tasks have the same length, and go on without a wait for shares in the order they ended.
    __device__ int next(int number) const { return even ? number + (int)gridDim.x : after(number); }
    // A walk over queries begins at the last ones, or with a window at a multiple of its length. So all blocks of
    // keys read the same queries at the same time, and add to the same sums, which are in the L2 cache.
    __device__ int top(const Span &span) const {
        int turn = (span.end - 1) / period * period;
        return (turn > span.begin ? turn : span.end) - 1;
    }
    __device__ int below(const Span &span, int block) const { return block == span.begin ? span.end - 1 : block - 1; }
    __device__ Task of(const Call &call, int number, int &split) const {
        int block = number / pairs, pair = number - block * pairs;
        split = pair % call.splits, pair /= call.splits;
        int sequence = pair / shares;
        return Task{block * KEYS, pair - sequence * shares, (i64)sequence * call.seq};
    }
    // tile is the number of a block of queries of a head.
    __device__ int tile(const Call &call, const Task &task, int head, int block) const { return ((int)(task.token / call.seq) * call.heads + head) * blocks + block; }
};

// Turns are the barriers between teams and the warps that keep the order: each has two slots.
struct Turns {
    unsigned gates;
    __device__ Gate mine(int step) const { return Gate{gates + (step & 1) * 8}; }      // the block has its turn
    __device__ Gate added(int step) const { return Gate{gates + 16 + (step & 1) * 8}; } // the third team has added its share
    __device__ Gate seen(int step) const { return Gate{gates + 32 + (step & 1) * 8}; }  // and that is announced
    __device__ Gate both(int step) const { return Gate{gates + 48 + (step & 1) * 8}; }  // both teams' gradients of scores are there
    __device__ Gate used(int step) const { return Gate{gates + 64 + (step & 1) * 8}; }  // and have been multiplied
    __device__ Gate given(int step) const { return Gate{gates + 80 + (step & 1) * 8}; } // a team's weights are there for the other
    __device__ Gate taken(int step) const { return Gate{gates + 96 + (step & 1) * 8}; }
    __device__ void begin() const {
        for (int i = 0; i < 2; i++) mine(i).begin(1), added(i).begin(4), seen(i).begin(1), both(i).begin(KEYS / 16), used(i).begin(4), given(i).begin(4), taken(i).begin(4);
    }
};

// fetchAll copies tiles.
__device__ inline void fetchAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes) {
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int sequence = task.token / call.seq, first = task.head * call.group + split * walk.members;
        fill<KEYS, WIDTH>(keys, call.k, task.first, task.head, sequence);
        bool met = false;
        _Pragma("unroll 1") for (int left = span.end - span.begin, block = walk.top(span); left > 0; left--, block = walk.below(span, block))
            _Pragma("unroll 1") for (int head = first; head < first + walk.members; head++) {
                fill<QUERIES, WIDTH>(queries, call.q, block * QUERIES, head, sequence);
                if (!met) fill<KEYS, WIDTH>(values, call.v, task.first, task.head, sequence);
                met = true;
                fill<QUERIES, WIDTH>(slopes, call.dy, block * QUERIES, head, sequence);
            }
    }
}

// fetchLines copies the numbers of rows. They have gaps, so that a warp does it.
__device__ inline void fetchLines(const Call &call, const Walk &walk, Ring<SLOTS> queries, Ring<SLOTS> slopes) {
    auto line = [&](Ring<SLOTS> &ring, unsigned to, const float *from, int start) {
        ring.gone().await(ring.round ^ 1);
        UNROLL for (int row = threadIdx.x % 32; row < QUERIES; row += 32)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + (ring.slot * QUERIES + row) * 4), "l"(from + (i64)(start + row) * call.heads), "r"(start + row < call.seq ? 4 : 0) : "memory");
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(ring.come().at) : "memory");
        ring.next();
    };
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        i64 first = task.token * call.heads + task.head * call.group + split * walk.members;
        _Pragma("unroll 1") for (int left = span.end - span.begin, block = walk.top(span); left > 0; left--, block = walk.below(span, block))
            _Pragma("unroll 1") for (int member = 0; member < walk.members; member++) {
                line(queries, call.lines, call.lse + first + member, block * QUERIES);
                line(slopes, call.lines + SLOTS * QUERIES * 4, call.delta + first + member, block * QUERIES);
            }
    }
}

// keepOrder waits for the block's turns, or announces the next ones.
template <bool ANNOUNCE> __device__ inline void keepOrder(const Call &call, const Walk &walk, Turns turns) {
    int step = 0;
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        _Pragma("unroll 1") for (int left = span.end - span.begin, block = walk.top(span); left > 0; left--, block = walk.below(span, block)) {
            Span sees = keysOf<QUERIES, KEYS>(call.mask, block * QUERIES);
            int before = task.first / KEYS - sees.begin, last = sees.end - 1 - sees.begin;
            _Pragma("unroll 1") for (int member = 0; member < walk.members; member++, step++) {
                int *turn = call.turns + walk.tile(call, task, task.head * call.group + split * walk.members + member, block);
                if (ANNOUNCE) {
                    turns.added(step).await(step >> 1 & 1);
                    turns.seen(step).arrive();
                    if (before < last) asm volatile("fence.acq_rel.gpu; st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(turn), "r"(before + 1) : "memory");
                } else {
                    int there = 0;
                    while (there < before) asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(there) : "l"(turn) : "memory");
                    if (before) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(there) : "l"(turn) : "memory");
                    if (step > 1) turns.seen(step).await((step >> 1 & 1) ^ 1);
                    turns.mine(step).arrive();
                }
            }
        }
    }
}

__device__ inline void two(unsigned at, float &one, float &other) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(one), "=f"(other) : "r"(at));
}

// put writes a block of sums in fp32.
template <int N> __device__ inline void put(float *to, i64 stride, const float (&sum)[N], float factor, int valid) {
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    UNROLL for (int half = 0; half < 2; half++)
        if (row + half * 8 < valid)
            UNROLL for (int i = 0; i < N / 4; i++)
                *(float2 *)(to + (row + half * 8) * stride + i * 8 + lane % 4 * 2) = make_float2(sum[i * 4 + half * 2] * factor, sum[i * 4 + half * 2 + 1] * factor);
}

// lay writes a factor of a product, turned, as a tile of queries × 64 keys.
__device__ inline void lay(unsigned at, const unsigned (&part)[QUERIES / 4]) {
    int lane = threadIdx.x % 32, row = lane / 16 * 8 + lane % 8, chunk = threadIdx.x / 32 % 4 * 2 + lane / 8 % 2;
    at += row * 128 + ((chunk ^ row) & 7) * 16;
    UNROLL for (int step = 0; step < QUERIES / 16; step++)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at + step * 2048), "r"(part[step * 4]), "r"(part[step * 4 + 1]), "r"(part[step * 4 + 2]),
                     "r"(part[step * 4 + 3]) : "memory");
}

// end stores a team's gradient of values or of keys, or adds it to the splits' parts.
template <int N> __device__ inline void end(const Call &call, const Walk &walk, const Task &task, int split, float (&sum)[N], float factor, bool values, int team, int column = 0) {
    int first = task.first + team * 64, valid = call.seq - first;
    i64 row = task.token + first;
    if (call.splits == 1) {
        int stride = values ? call.dvStride : call.dkStride;
        store((values ? call.dv : call.dk) + row * stride + task.head * WIDTH + column, stride, sum, factor, factor, valid);
    } else {
        i64 columns = (i64)walk.shares * WIDTH, rows = (i64)(walk.pairs / (walk.shares * call.splits)) * call.seq;
        put(call.parts + ((split * 2 + values) * rows + row) * columns + task.head * WIDTH + column, columns, sum, factor, valid);
    }
}

// share adds a part of a block's gradient of queries to the sum, in the order of the registers, or adds
// the sum of the others to the last one and stores it.
__device__ inline void share(const Call &call, const Walk &walk, const Task &task, int head, int block, float (&sum)[PART], int part) {
    int before = task.first / KEYS;
    Span span = keysOf<QUERIES, KEYS>(call.mask, block * QUERIES);
    float *at = call.sums + (i64)walk.tile(call, task, head, block) * (QUERIES * WIDTH) + part * (PART * 128) + threadIdx.x % 128 * 4;
    if (before == span.end - 1) {
        if (before > span.begin) UNROLL for (int i = 0; i < PART / 4; i++) {
            float4 sofar;
            asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(sofar.x), "=f"(sofar.y), "=f"(sofar.z), "=f"(sofar.w) : "l"(at + i * 512) : "memory");
            sum[i * 4] += sofar.x, sum[i * 4 + 1] += sofar.y, sum[i * 4 + 2] += sofar.z, sum[i * 4 + 3] += sofar.w;
        }
        int first = block * QUERIES + (WIDTH == 64 ? part * 64 : 0);
        store(call.dq + (task.token + first) * call.dqStride + head * WIDTH + (WIDTH == 64 ? 0 : part * 64), call.dqStride, sum, call.scale, call.scale, call.seq - first);
    } else if (before == span.begin) {
        UNROLL for (int i = 0; i < PART / 4; i++) *(float4 *)(at + i * 512) = make_float4(sum[i * 4], sum[i * 4 + 1], sum[i * 4 + 2], sum[i * 4 + 3]);
    } else {
        UNROLL for (int i = 0; i < PART / 4; i++)
            asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at + i * 512), "f"(sum[i * 4]), "f"(sum[i * 4 + 1]), "f"(sum[i * 4 + 2]), "f"(sum[i * 4 + 3]) : "memory");
    }
}

// joinAll makes gradients of queries of both teams' gradients of scores, and of all keys.
__device__ inline void joinAll(const Call &call, const Walk &walk, Ring<OWN> keys, Turns turns) {
    int lane = threadIdx.x % 32, turn = 0;
    float own[PART];
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int base = task.head * call.group + split * walk.members;
        keys.await();
        _Pragma("unroll 1") for (int left = span.end - span.begin, block = walk.top(span); left > 0; left--, block = walk.below(span, block))
            _Pragma("unroll 1") for (int member = 0; member < walk.members; member++, turn++) {
                turns.both(turn).await(turn >> 1 & 1);
                _Pragma("unroll 1") for (int part = 0; part < PARTS; part++) {
                    unsigned one = upright(call.slopes + (turn & 1) * S_BYTES + (WIDTH == 64 ? part * 64 * 128 : 0)), other = turned(keys.at() + (WIDTH == 64 ? 0 : part * KEYS * 128), KEYS);
                    begin();
                    hold(own);
                    UNROLL for (int step = 0; step < KEYS / 16; step++)
                        multiply<1>(own, described(one + step / 4 * QUERIES * 8 + step % 4 * 2), described(other + step * 128), step > 0);
                    send();
                    finish<0>();
                    hold(own);
                    if (part == 0) turns.mine(turn).await(turn >> 1 & 1);
                    if (part == PARTS - 1 && lane == 0) turns.used(turn).arrive();
                    share(call, walk, task, base + member, block, own, part);
                }
                if (turn > 1) turns.seen(turn).await((turn >> 1 & 1) ^ 1);
                __syncwarp();
                if (lane == 0) turns.added(turn).arrive();
            }
        keys.release();
        keys.next();
    }
}

// weigh makes weights of scores. place is a lane's first key among the block's.
__device__ inline void weigh(const Call &call, const Task &task, const Span &span, float (&score)[QUERIES / 2], int slot, int block, int place) {
    unsigned logs = call.lines + slot * QUERIES * 4 + threadIdx.x % 4 * 8;
    UNROLL for (int i = 0; i < QUERIES / 8; i++) {
        float log[2];
        two(logs + i * 32, log[0], log[1]);
        UNROLL for (int j = 0; j < 4; j++) score[i * 4 + j] = power(fmaf(score[i * 4 + j], call.unit, log[j % 2] * -LOG2E));
    }
    if (span.masked(block) || task.first + KEYS > call.seq) UNROLL for (int half = 0; half < 2; half++) {
        int low, high, seen = task.first + place + half * 8;
        call.mask.queries(seen, low, high);
        if (seen >= call.seq) high = low; // its weights meet zeros, and must not be infinite
        cover(score, half, low, high, block * QUERIES, 0);
    }
}

__device__ inline void attendAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes, Turns turns, int team) {
    int lane = threadIdx.x % 32, t = lane % 4, place = team * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4, turn = 0;
    float score[QUERIES / 2], keySum[WIDTH / 2], valueSum[WIDTH / 2];
    unsigned factor[QUERIES / 4]; // weights, then gradients of scores
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int block = walk.top(span), left = span.end - span.begin, member = 0, keep = 0;
        unsigned key = keys.at() + team * 64 * 128, value = values.at() + team * 64 * 128;
        auto scores = [&](unsigned query) {
            begin();
            hold(score);
            across<WIDTH>(score, key, KEYS, query, QUERIES);
            send();
        };
        keys.await();
        queries.await();
        scores(queries.at());
        finish<0>();
        hold(score);
        weigh(call, task, span, score, queries.slot, block, place);
        narrowed(factor, score);
        values.await();
        _Pragma("unroll 1") while (left > 0) {
            unsigned deltas = call.lines + (SLOTS + slopes.slot) * QUERIES * 4 + t * 8, query = queries.at();
            slopes.await();
            begin();
            hold(score);
            across<WIDTH>(score, value, KEYS, slopes.at(), QUERIES);
            send();
            begin();
            hold(factor);
            along<QUERIES>(valueSum, factor, slopes.at(), keep);
            send();
            finish<1>();
            hold(score);
            UNROLL for (int i = 0; i < QUERIES / 8; i++) {
                float common[2];
                two(deltas + i * 32, common[0], common[1]);
                UNROLL for (int j = 0; j < 4; j++) score[i * 4 + j] = __uint_as_float(j & 1 ? factor[i * 2 + j / 2] & 0xffff0000u : factor[i * 2 + j / 2] << 16) * (score[i * 4 + j] - common[j % 2]);
            }
            finish<0>();
            hold(factor);
            slopes.release();
            slopes.next();
            narrowed(factor, score);
            turns.used(turn).await((turn >> 1 & 1) ^ 1);
            lay(call.slopes + (turn & 1) * S_BYTES + team * QUERIES * 128, factor);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (lane == 0) turns.both(turn).arrive();
            Gate gone = queries.gone();
            queries.next();
            if (++member == walk.members) member = 0, left--, block = walk.below(span, block);
            unsigned following = query;
            if (left > 0) following = queries.at(), queries.await();
            scores(following); // the next ones; behind the last, they are not used
            begin();
            hold(factor);
            along<QUERIES>(keySum, factor, query, keep);
            send();
            finish<1>();
            hold(score);
            weigh(call, task, span, score, queries.slot, block, place);
            finish<0>();
            hold(factor);
            narrowed(factor, score);
            if (lane == 0) gone.arrive();
            keep = 1;
            turn++;
        }
        hold(keySum);
        hold(valueSum);
        keys.release(), values.release();
        keys.next(), values.next();
        end(call, walk, task, split, keySum, call.scale, false, team);
        end(call, walk, task, split, valueSum, 1, true, team);
    }
}

// weighAll makes weights of scores, gives them to the other team, and makes the gradients of values.
__device__ inline void weighAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<SLOTS> queries, Ring<SLOTS> slopes, Turns turns) {
    int lane = threadIdx.x % 32, place = threadIdx.x / 32 % 4 * 16 + lane / 4, turn = 0;
    float score[QUERIES / 2], valueSum[2][HALF];
    unsigned weight[QUERIES / 4];
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int block = walk.top(span), left = span.end - span.begin, member = 0, keep = 0;
        auto give = [&]() {
            narrowed(weight, score);
            turns.taken(turn).await((turn >> 1 & 1) ^ 1);
            unsigned at = call.weights + (turn & 1) * S_BYTES + threadIdx.x % 128 * 16;
            UNROLL for (int i = 0; i < QUERIES / 16; i++)
                asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at + i * 2048), "r"(weight[i * 4]), "r"(weight[i * 4 + 1]), "r"(weight[i * 4 + 2]), "r"(weight[i * 4 + 3]) : "memory");
            __syncwarp();
            if (lane == 0) turns.given(turn).arrive();
            turn++;
        };
        keys.await();
        queries.await();
        begin();
        hold(score);
        across<WIDTH>(score, keys.at(), KEYS, queries.at(), QUERIES);
        send();
        finish<0>();
        hold(score);
        weigh(call, task, span, score, queries.slot, block, place);
        give();
        queries.release();
        queries.next();
        _Pragma("unroll 1") while (left > 0) {
            if (++member == walk.members) member = 0, left--, block = walk.below(span, block);
            bool more = left > 0;
            if (more) queries.await();
            slopes.await();
            begin();
            hold(score);
            across<WIDTH>(score, keys.at(), KEYS, queries.at(), QUERIES); // the next ones; behind the last, they are not used
            send();
            begin();
            hold(weight);
            UNROLL for (int i = 0; i < 2; i++) along<QUERIES>(valueSum[i], weight, slopes.at() + i * (WIDTH / 128 * QUERIES * 128), keep);
            send();
            finish<1>();
            hold(score);
            weigh(call, task, span, score, queries.slot, block, place);
            finish<0>();
            hold(weight);
            slopes.release();
            slopes.next();
            if (more) {
                queries.release();
                queries.next();
                give();
            }
            keep = 1;
        }
        hold(valueSum[0]), hold(valueSum[1]);
        keys.release();
        keys.next();
        UNROLL for (int i = 0; i < 2; i++) end(call, walk, task, split, valueSum[i], 1, true, 0, i * WIDTH / 2);
    }
}

// slopeAll makes gradients of scores and those of keys.
__device__ inline void slopeAll(const Call &call, const Walk &walk, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes, Turns turns) {
    int lane = threadIdx.x % 32, t = lane % 4, turn = 0;
    float gradient[QUERIES / 2], keySum[2][HALF];
    unsigned part[QUERIES / 4];
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = walk.next(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int left = (span.end - span.begin) * walk.members, keep = 0;
        auto bend = [&]() {
            unsigned deltas = call.lines + (SLOTS + slopes.slot) * QUERIES * 4 + t * 8, at = call.weights + (turn & 1) * S_BYTES + threadIdx.x % 128 * 16;
            turns.given(turn).await(turn >> 1 & 1);
            UNROLL for (int i = 0; i < QUERIES / 16; i++) {
                unsigned weight[4];
                asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(weight[0]), "=r"(weight[1]), "=r"(weight[2]), "=r"(weight[3]) : "r"(at + i * 2048) : "memory");
                UNROLL for (int k = 0; k < 2; k++) {
                    float common[2];
                    two(deltas + (i * 2 + k) * 32, common[0], common[1]);
                    UNROLL for (int j = 0; j < 4; j++) {
                        float &at = gradient[(i * 2 + k) * 4 + j];
                        at = __uint_as_float(j & 1 ? weight[k * 2 + j / 2] & 0xffff0000u : weight[k * 2 + j / 2] << 16) * (at - common[j % 2]);
                    }
                }
            }
            __syncwarp();
            if (lane == 0) turns.taken(turn).arrive();
        };
        auto give = [&]() {
            narrowed(part, gradient);
            turns.used(turn).await((turn >> 1 & 1) ^ 1);
            lay(call.slopes + (turn & 1) * S_BYTES, part);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (lane == 0) turns.both(turn).arrive();
            turn++;
        };
        values.await();
        slopes.await();
        begin();
        hold(gradient);
        across<WIDTH>(gradient, values.at(), KEYS, slopes.at(), QUERIES);
        send();
        finish<0>();
        hold(gradient);
        bend();
        give();
        slopes.release();
        slopes.next();
        _Pragma("unroll 1") while (left > 0) {
            bool more = --left > 0;
            if (more) slopes.await();
            queries.await();
            begin();
            hold(gradient);
            across<WIDTH>(gradient, values.at(), KEYS, slopes.at(), QUERIES); // the next ones; behind the last, they are not used
            send();
            begin();
            hold(part);
            UNROLL for (int i = 0; i < 2; i++) along<QUERIES>(keySum[i], part, queries.at() + i * (WIDTH / 128 * QUERIES * 128), keep);
            send();
            finish<1>();
            hold(gradient);
            if (more) bend();
            finish<0>();
            hold(part);
            queries.release();
            queries.next();
            if (more) {
                slopes.release();
                slopes.next();
                give();
            }
            keep = 1;
        }
        hold(keySum[0]), hold(keySum[1]);
        values.release();
        values.next();
        UNROLL for (int i = 0; i < 2; i++) end(call, walk, task, split, keySum[i], call.scale, false, 0, i * WIDTH / 2);
    }
}

extern "C" __global__ void __launch_bounds__(512, 1)
    attention_backward(const __grid_constant__ Map q, const __grid_constant__ Map k, const __grid_constant__ Map v, const __grid_constant__ Map dy, const float *lse,
                       const float *delta, bf16 *dq, bf16 *dk, bf16 *dv, float *parts, float *sums, int dqStride, int dkStride, int dvStride, int seq, int heads, int group, int splits,
                       int causal, int window, float scale, int pairs) {
    extern __shared__ __align__(1024) char room[];
    unsigned base = place(room), tiles = base + 2 * OWN * K_BYTES, slope = tiles + 2 * SLOTS * Q_BYTES, weights = slope + 2 * S_BYTES, lines = weights + (WIDE ? 2 * S_BYTES : 0), gates = lines + 2 * SLOTS * QUERIES * 4;
    Ring<OWN> keys(gates, base, K_BYTES), values(gates + OWN * 16, base + OWN * K_BYTES, K_BYTES);
    Ring<SLOTS> queries(gates + OWN * 32, tiles, Q_BYTES), slopes(gates + OWN * 32 + SLOTS * 16, tiles + SLOTS * Q_BYTES, Q_BYTES);
    Turns turns{gates + (OWN + SLOTS) * 32};
    if (threadIdx.x == 0) {
        turns.begin();
        keys.begin(1, WIDE ? 8 : 12), values.begin(1, WIDE ? 4 : 8), queries.begin(33, 8), slopes.begin(33, 8); // 33: with the warp of fetchLines
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    int *turn = (int *)(sums + (i64)pairs * ((seq + QUERIES - 1) / QUERIES) * (QUERIES * WIDTH));
    Call call{&q, &k, &v, &dy, lse, delta, dq, dk, dv, parts, sums, turn, dqStride, dkStride, dvStride, seq, heads, group, splits, Mask(seq, causal, window), scale, scale * LOG2E, lines, slope, weights};
    Walk walk(call, pairs);
    int team = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (team == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(WIDTH < 128 ? 40 : 32));
        if (threadIdx.x == 0) fetchAll(call, walk, keys, values, queries, slopes);
        else if (threadIdx.x / 32 == 1) fetchLines(call, walk, queries, slopes);
        else if (threadIdx.x == 64) keepOrder<false>(call, walk, turns);
        else if (threadIdx.x == 96) keepOrder<true>(call, walk, turns);
    } else if (team == 1) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(WIDTH < 128 ? 88 : 64));
        joinAll(call, walk, keys, turns);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(WIDTH < 128 ? 192 : 208));
        if (!WIDE) attendAll(call, walk, keys, values, queries, slopes, turns, team - 2);
        else if (team == 2) weighAll(call, walk, keys, queries, slopes, turns);
        else slopeAll(call, walk, values, queries, slopes, turns);
    }
}
