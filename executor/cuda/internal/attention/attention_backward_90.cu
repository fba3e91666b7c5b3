// Attention backward on Hopper, in one pass: the gradients of keys and values are sums over the
// heads that share them. With splits, a sum is over some of these heads. Two teams of warps own
// 64 keys each, and walk over blocks of queries. Scores have their keys in rows, so that
// weights go into the next products from registers.
//
// A block of queries gets its gradient from all blocks of keys that it sees. Their shares are added
// in fp32, in the order of the keys, so that every run has the same bits: turns counts
// the shares that are there. One thread waits for a block's turn, and one has the copy engine add the
// share and announces the next turn. The last share makes the sum bf16.
#include "hopper.h"

const int KEYS = TEAMS * 64, QUERIES = WIDTH == 64 ? 128 : 64, Q_BYTES = QUERIES * WIDTH * 2, K_BYTES = KEYS * WIDTH * 2, S_BYTES = QUERIES * KEYS * 2, SHARE_BYTES = QUERIES * WIDTH * 4;
extern "C" __constant__ const int SHARED = 2 * OWN * K_BYTES + 2 * SLOTS * (Q_BYTES + QUERIES * 4) + 2 * S_BYTES + SHARE_BYTES + (OWN + SLOTS + 2) * 32;

struct Call {
    const Map *q, *k, *v, *dy;
    const float *lse, *delta;
    bf16 *dq, *dk, *dv;
    float *parts, *sums;
    int *turns;
    int dqStride, dkStride, dvStride, seq, heads, group, splits;
    Mask mask;
    float scale, unit;
    unsigned lines, slopes, shares;
};

struct Walk {
    int pairs, count, shares, members, blocks;
    __device__ Walk(const Call &call, int heads)
        : pairs(heads / call.group * call.splits), count((call.seq + KEYS - 1) / KEYS * pairs), shares(call.heads / call.group), members(call.group / call.splits),
          blocks((call.seq + QUERIES - 1) / QUERIES) {}
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
    __device__ Gate added(int step) const { return Gate{gates + 16 + (step & 1) * 8}; } // the teams have laid their shares down
    __device__ Gate seen(int step) const { return Gate{gates + 32 + (step & 1) * 8}; }  // and these have been read
    __device__ Gate both(int step) const { return Gate{gates + 48 + (step & 1) * 8}; }  // both teams' gradients of scores are there
    __device__ void begin() const {
        for (int i = 0; i < 2; i++) mine(i).begin(1), added(i).begin(TEAMS * 4), seen(i).begin(1), both(i).begin(TEAMS * 4);
    }
};

// fetchAll copies tiles. It begins with the last queries: all blocks of keys read these at the same
// time, so that they are in the L2 cache.
__device__ inline void fetchAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes) {
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int sequence = task.token / call.seq, first = task.head * call.group + split * walk.members;
        fill<KEYS, WIDTH>(keys, call.k, task.first, task.head, sequence);
        bool met = false;
        _Pragma("unroll 1") for (int block = span.end - 1; block >= span.begin; block--)
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
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        i64 first = task.token * call.heads + task.head * call.group + split * walk.members;
        _Pragma("unroll 1") for (int block = span.end - 1; block >= span.begin; block--)
            _Pragma("unroll 1") for (int member = 0; member < walk.members; member++) {
                line(queries, call.lines, call.lse + first + member, block * QUERIES);
                line(slopes, call.lines + SLOTS * QUERIES * 4, call.delta + first + member, block * QUERIES);
            }
    }
}

// keepOrder waits for the block's turns, or announces the next ones.
template <bool ANNOUNCE> __device__ inline void keepOrder(const Call &call, const Walk &walk, Turns turns) {
    int step = 0;
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        _Pragma("unroll 1") for (int block = span.end - 1; block >= span.begin; block--) {
            Span sees = keysOf<QUERIES, KEYS>(call.mask, block * QUERIES);
            int before = task.first / KEYS - sees.begin, last = sees.end - 1 - sees.begin;
            _Pragma("unroll 1") for (int member = 0; member < walk.members; member++, step++) {
                int *turn = call.turns + walk.tile(call, task, task.head * call.group + split * walk.members + member, block);
                if (ANNOUNCE) {
                    float *to = call.sums + (turn - call.turns) * (QUERIES * WIDTH);
                    turns.added(step).await(step >> 1 & 1);
                    turns.mine(step).await(step >> 1 & 1);
                    if (before < last) {
                        asm volatile("fence.proxy.async;" ::: "memory");
                        if (before == 0) asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(call.shares), "n"(SHARE_BYTES) : "memory");
                        else asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to), "r"(call.shares), "n"(SHARE_BYTES) : "memory");
                        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
                    }
                    turns.seen(step).arrive();
                    if (before < last) asm volatile("cp.async.bulk.wait_group 0; fence.proxy.async; fence.acq_rel.gpu; st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(turn), "r"(before + 1) : "memory");
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
__device__ inline void put(float *to, i64 stride, const float (&sum)[WIDTH / 2], float factor, int valid) {
    int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4;
    UNROLL for (int half = 0; half < 2; half++)
        if (row + half * 8 < valid)
            UNROLL for (int i = 0; i < WIDTH / 8; i++)
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

// share lays a team's share of a block's gradient of queries down in the order of the registers, or adds
// the last one to the sum of the others and stores it.
__device__ inline void share(const Call &call, const Walk &walk, const Task &task, int head, int block, float (&sum)[32], int team, Gate mine, unsigned round) {
    int before = task.first / KEYS;
    Span span = keysOf<QUERIES, KEYS>(call.mask, block * QUERIES);
    float *at = call.sums + (i64)walk.tile(call, task, head, block) * (QUERIES * WIDTH) + team * 4096 + threadIdx.x % 128 * 4;
    if (before == span.end - 1) {
        mine.await(round);
        if (before > span.begin) UNROLL for (int i = 0; i < 8; i++) {
            float4 sofar;
            asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(sofar.x), "=f"(sofar.y), "=f"(sofar.z), "=f"(sofar.w) : "l"(at + i * 512) : "memory");
            sum[i * 4] += sofar.x, sum[i * 4 + 1] += sofar.y, sum[i * 4 + 2] += sofar.z, sum[i * 4 + 3] += sofar.w;
        }
        int first = block * QUERIES + (WIDTH == 64 ? team * 64 : 0);
        store(call.dq + (task.token + first) * call.dqStride + head * WIDTH + (WIDTH == 64 ? 0 : team * 64), call.dqStride, sum, call.scale, call.scale, call.seq - first);
    } else {
        UNROLL for (int i = 0; i < 8; i++)
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(call.shares + (team * 4096 + i * 512 + threadIdx.x % 128 * 4) * 4), "f"(sum[i * 4]), "f"(sum[i * 4 + 1]), "f"(sum[i * 4 + 2]), "f"(sum[i * 4 + 3]) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
}

__device__ inline void attendAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes, Turns turns, int team) {
    int lane = threadIdx.x % 32, t = lane % 4, place = team * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4, turn = 0;
    float score[QUERIES / 2], gradient[QUERIES / 2], own[32], keySum[WIDTH / 2], valueSum[WIDTH / 2];
    unsigned weight[QUERIES / 4], part[QUERIES / 4];
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        int block = span.end - 1, member = 0, keep = 0, base = task.head * call.group + split * walk.members;
        unsigned key = keys.at() + team * 64 * 128, value = values.at() + team * 64 * 128, whole = keys.at() + (WIDTH == 64 ? 0 : team * KEYS * 128);
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
        values.await();
        _Pragma("unroll 1") while (block >= span.begin) {
            unsigned logs = call.lines + queries.slot * QUERIES * 4 + t * 8, deltas = logs + SLOTS * QUERIES * 4, query = queries.at();
            slopes.await();
            begin();
            hold(gradient);
            across<WIDTH>(gradient, value, KEYS, slopes.at(), QUERIES);
            send();
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
            finish<0>();
            hold(gradient);
            UNROLL for (int i = 0; i < QUERIES / 8; i++) {
                float common[2];
                two(deltas + i * 32, common[0], common[1]);
                UNROLL for (int j = 0; j < 4; j++) gradient[i * 4 + j] = score[i * 4 + j] * (gradient[i * 4 + j] - common[j % 2]);
            }
            narrowed(part, gradient);
            lay(call.slopes + (turn & 1) * S_BYTES + team * QUERIES * 128, part);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (lane == 0) turns.both(turn).arrive();
            narrowed(weight, score);
            begin();
            hold(weight);
            along<QUERIES>(valueSum, weight, slopes.at(), keep);
            send();
            turns.both(turn).await(turn >> 1 & 1);
            // The gradient of queries: both teams' gradients of scores, and all keys.
            unsigned one = upright(call.slopes + (turn & 1) * S_BYTES + (WIDTH == 64 ? team * 64 * 128 : 0)), other = turned(whole, KEYS);
            begin();
            hold(own);
            UNROLL for (int step = 0; step < KEYS / 16; step++)
                multiply<1>(own, described(one + step / 4 * QUERIES * 8 + step % 4 * 2), described(other + step * 128), step > 0);
            send();
            finish<1>();
            hold(weight);
            begin();
            hold(part);
            along<QUERIES>(keySum, part, query, keep);
            send();
            finish<1>();
            hold(own);
            slopes.release();
            slopes.next();
            Gate left = queries.gone();
            queries.next();
            int head = base + member, now = block;
            if (++member == walk.members) member = 0, block--;
            if (block >= span.begin) query = queries.at(), queries.await();
            scores(query); // the next ones; behind the last, they are not used
            if (turn > 0) turns.seen(turn - 1).await((turn - 1) >> 1 & 1);
            share(call, walk, task, head, now, own, team, turns.mine(turn), turn >> 1 & 1);
            __syncwarp();
            if (lane == 0) turns.added(turn).arrive();
            finish<0>();
            hold(part);
            hold(score);
            if (lane == 0) left.arrive();
            keep = 1;
            turn++;
        }
        hold(keySum);
        hold(valueSum);
        keys.release(), values.release();
        keys.next(), values.next();
        int first = task.first + team * 64, valid = call.seq - first;
        i64 row = task.token + first;
        if (call.splits == 1) {
            store(call.dk + row * call.dkStride + task.head * WIDTH, call.dkStride, keySum, call.scale, call.scale, valid);
            store(call.dv + row * call.dvStride + task.head * WIDTH, call.dvStride, valueSum, 1, 1, valid);
        } else {
            i64 columns = (i64)walk.shares * WIDTH, rows = (i64)(walk.pairs / (walk.shares * call.splits)) * call.seq;
            float *parts = call.parts + (split * 2 * rows + row) * columns + task.head * WIDTH;
            put(parts, columns, keySum, call.scale, valid);
            put(parts + rows * columns, columns, valueSum, 1, valid);
        }
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    attention_backward(const __grid_constant__ Map q, const __grid_constant__ Map k, const __grid_constant__ Map v, const __grid_constant__ Map dy, const float *lse,
                       const float *delta, bf16 *dq, bf16 *dk, bf16 *dv, float *parts, float *sums, int dqStride, int dkStride, int dvStride, int seq, int heads, int group, int splits,
                       int causal, int window, float scale, int pairs) {
    extern __shared__ __align__(1024) char room[];
    unsigned base = place(room), tiles = base + 2 * OWN * K_BYTES, slope = tiles + 2 * SLOTS * Q_BYTES, share = slope + 2 * S_BYTES, lines = share + SHARE_BYTES, gates = lines + 2 * SLOTS * QUERIES * 4;
    Ring<OWN> keys(gates, base, K_BYTES), values(gates + OWN * 16, base + OWN * K_BYTES, K_BYTES);
    Ring<SLOTS> queries(gates + OWN * 32, tiles, Q_BYTES), slopes(gates + OWN * 32 + SLOTS * 16, tiles + SLOTS * Q_BYTES, Q_BYTES);
    Turns turns{gates + (OWN + SLOTS) * 32};
    if (threadIdx.x == 0) {
        turns.begin();
        keys.begin(1, TEAMS * 4), values.begin(1, TEAMS * 4), queries.begin(33, TEAMS * 4), slopes.begin(33, TEAMS * 4); // 33: with the warp of fetchLines
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    int *turn = (int *)(sums + (i64)pairs * ((seq + QUERIES - 1) / QUERIES) * (QUERIES * WIDTH));
    Call call{&q, &k, &v, &dy, lse, delta, dq, dk, dv, parts, sums, turn, dqStride, dkStride, dvStride, seq, heads, group, splits, Mask(seq, causal, window), scale, scale * LOG2E, lines, slope, share};
    Walk walk(call, pairs);
    int team = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (team == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(WIDTH == 64 ? 40 : 24));
        if (threadIdx.x == 0) fetchAll(call, walk, keys, values, queries, slopes);
        else if (threadIdx.x / 32 == 1) fetchLines(call, walk, queries, slopes);
        else if (threadIdx.x == 64) keepOrder<false>(call, walk, turns);
        else if (threadIdx.x == 96) keepOrder<true>(call, walk, turns);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(WIDTH == 64 ? 232 : 240));
        attendAll(call, walk, keys, values, queries, slopes, turns, team - 1);
    }
}
