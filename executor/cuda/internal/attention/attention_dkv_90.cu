// The gradients of keys and values on Hopper: sums over the heads that share them. With
// splits, a sum is over some of these heads. Two teams of warps own 64 keys each, and walk
// over blocks of queries. Scores have their keys in rows, so that weights go into the next
// products from registers. Scores of the next queries are under way while the products with
// the last ones end.
#include "hopper.h"

const int KEYS = TEAMS * 64, QUERIES = 64, Q_BYTES = QUERIES * WIDTH * 2, K_BYTES = KEYS * WIDTH * 2;
extern "C" __constant__ const int SHARED = 1024 + 2 * OWN * K_BYTES + 2 * SLOTS * (Q_BYTES + QUERIES * 4) + (OWN + SLOTS) * 32;

struct Call {
    const bf16 *q, *k, *v, *dy;
    const float *lse, *delta;
    bf16 *dk, *dv;
    float *parts;
    int qStride, kStride, vStride, dyStride, dkStride, dvStride, seq, heads, group, splits;
    Mask mask;
    float scale, unit;
    unsigned lines;
};

struct Walk {
    int pairs, count, shares, members;
    __device__ Walk(const Call &call, int heads)
        : pairs(heads / call.group * call.splits), count((call.seq + KEYS - 1) / KEYS * pairs), shares(call.heads / call.group), members(call.group / call.splits) {}
    __device__ Task of(const Call &call, int number, int &split) const {
        int block = number / pairs, pair = number - block * pairs;
        split = pair % call.splits, pair /= call.splits;
        int sequence = pair / shares;
        return Task{block * KEYS, pair - sequence * shares, (i64)sequence * call.seq};
    }
};

__device__ inline void fetchAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes) {
    Fetcher fetcher;
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        i64 row = task.token + task.first;
        fetcher.open(keys);
        fetch<KEYS, WIDTH>(keys.at(), call.k + row * call.kStride + task.head * WIDTH, call.kStride, call.seq - task.first);
        fetcher.close(keys);
        bool met = false;
        // It begins with the last queries. All blocks of keys read these at the same time, so that they are in the L2 cache.
        _Pragma("unroll 1") for (int block = span.end - 1; block >= span.begin; block--) {
            int start = block * QUERIES, valid = call.seq - start;
            _Pragma("unroll 1") for (int member = 0; member < walk.members; member++) {
                int head = task.head * call.group + split * walk.members + member;
                const bf16 *q = call.q + task.token * call.qStride + head * WIDTH, *dy = call.dy + task.token * call.dyStride + head * WIDTH;
                const float *lse = call.lse + task.token * call.heads + head, *delta = call.delta + task.token * call.heads + head;
                fetcher.open(queries);
                fetch<QUERIES, WIDTH>(queries.at(), q + (i64)start * call.qStride, call.qStride, valid);
                fetchLine<QUERIES>(call.lines + queries.slot * QUERIES * 4, lse + (i64)start * call.heads, call.heads, valid, 0);
                fetcher.close(queries);
                if (!met) {
                    fetcher.open(values);
                    fetch<KEYS, WIDTH>(values.at(), call.v + row * call.vStride + task.head * WIDTH, call.vStride, call.seq - task.first);
                    fetcher.close(values);
                    met = true;
                }
                fetcher.open(slopes);
                fetch<QUERIES, WIDTH>(slopes.at(), dy + (i64)start * call.dyStride, call.dyStride, valid);
                fetchLine<QUERIES>(call.lines + (SLOTS + slopes.slot) * QUERIES * 4, delta + (i64)start * call.heads, call.heads, valid, 64);
                fetcher.close(slopes);
            }
        }
    }
    fetcher.flush();
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

__device__ inline void attendAll(const Call &call, const Walk &walk, Ring<OWN> keys, Ring<OWN> values, Ring<SLOTS> queries, Ring<SLOTS> slopes, int team) {
    int lane = threadIdx.x % 32, t = lane % 4, place = team * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        int split;
        Task task = walk.of(call, number, split);
        Span span = queriesOf<KEYS, QUERIES>(call.mask, task.first);
        float score[QUERIES / 2], gradient[QUERIES / 2], keySum[WIDTH / 2], valueSum[WIDTH / 2];
        unsigned weight[QUERIES / 4], part[QUERIES / 4];
        int steps = (span.end - span.begin) * walk.members, block = span.end - 1, member = 0, keep = 0;
        unsigned key = keys.at() + team * 64 * 128, value = values.at() + team * 64 * 128;
        Ring<SLOTS> oldQueries = queries, oldSlopes = slopes;
        keys.await();
        _Pragma("unroll 1") for (int step = 0; step < steps; step++) {
            unsigned logs = call.lines + queries.slot * QUERIES * 4 + t * 8, deltas = call.lines + (SLOTS + slopes.slot) * QUERIES * 4 + t * 8;
            queries.await();
            begin();
            hold(score);
            across<WIDTH>(score, key, KEYS, queries.at(), QUERIES);
            send();
            if (step == 0) values.await();
            slopes.await();
            begin();
            hold(gradient);
            across<WIDTH>(gradient, value, KEYS, slopes.at(), QUERIES);
            send();
            finish<2>();
            if (WIDTH == 64) hold(weight);
            hold(part);
            if (step > 0) oldQueries.release(), oldSlopes.release();
            finish<1>();
            hold(score);
            UNROLL for (int i = 0; i < QUERIES / 8; i++) {
                float log[2];
                two(logs + i * 32, log[0], log[1]);
                UNROLL for (int j = 0; j < 4; j++) score[i * 4 + j] = power(fmaf(score[i * 4 + j], call.unit, log[j % 2] * -LOG2E));
            }
            if (span.masked(block)) UNROLL for (int half = 0; half < 2; half++) {
                int low, high;
                call.mask.queries(task.first + place + half * 8, low, high);
                cover(score, half, low, high, block * QUERIES, 0);
            }
            narrowed(weight, score);
            begin();
            hold(weight);
            along<QUERIES>(valueSum, weight, slopes.at(), keep);
            send();
            finish<WIDTH == 128 ? 0 : 1>(); // wider heads need the weights' registers again
            hold(gradient);
            if (WIDTH == 128) hold(weight);
            UNROLL for (int i = 0; i < QUERIES / 8; i++) {
                float common[2];
                two(deltas + i * 32, common[0], common[1]);
                UNROLL for (int j = 0; j < 4; j++) gradient[i * 4 + j] = score[i * 4 + j] * (gradient[i * 4 + j] - common[j % 2]);
            }
            narrowed(part, gradient);
            begin();
            hold(part);
            along<QUERIES>(keySum, part, queries.at(), keep);
            send();
            oldQueries = queries, oldSlopes = slopes;
            queries.next(), slopes.next();
            keep = 1;
            if (++member == walk.members) member = 0, block--;
        }
        finish<0>();
        hold(keySum);
        hold(valueSum);
        if (WIDTH == 64) hold(weight);
        hold(part);
        oldQueries.release(), oldSlopes.release();
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
    attention_dkv(const bf16 *q, const bf16 *k, const bf16 *v, const bf16 *dy, const float *lse, const float *delta, bf16 *dk, bf16 *dv, float *parts, int qStride, int kStride, int vStride, int dyStride,
                  int dkStride, int dvStride, int seq, int heads, int group, int dim, int splits, int causal, int window, float scale, int pairs) {
    extern __shared__ char room[];
    unsigned base = (place(room) + 1023) & ~1023u, tiles = base + 2 * OWN * K_BYTES, lines = tiles + 2 * SLOTS * Q_BYTES, gates = lines + 2 * SLOTS * QUERIES * 4;
    Ring<OWN> keys(gates, base, K_BYTES), values(gates + OWN * 16, base + OWN * K_BYTES, K_BYTES);
    Ring<SLOTS> queries(gates + OWN * 32, tiles, Q_BYTES), slopes(gates + OWN * 32 + SLOTS * 16, tiles + SLOTS * Q_BYTES, Q_BYTES);
    ready(TEAMS, queries, slopes, keys, values);
    Call call{q, k, v, dy, lse, delta, dk, dv, parts, qStride, kStride, vStride, dyStride, dkStride, dvStride, seq, heads, group, splits, Mask(seq, causal, window), scale, scale * LOG2E, lines};
    Walk walk(call, pairs);
    int team = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (team == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER));
        fetchAll(call, walk, keys, values, queries, slopes);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(504 / 2 - PRODUCER / 2));
        attendAll(call, walk, keys, values, queries, slopes, team - 1);
    }
}
