// The gradient of queries on Hopper. Two teams of warps own 64 queries each, and walk over
// the keys that these see: scores and dy·vᵀ, then weights and their gradients, then
// the latter times keys. While one team makes weights, the other's products run.
#include "hopper.h"

const bool LIGHT = WIDTH == 64; // there are registers for all of a team's dy
const int QUERIES = TEAMS * 64, Q_BYTES = QUERIES * WIDTH * 2, K_BYTES = KEYS * WIDTH * 2;
extern "C" __constant__ const int SHARED = 1024 + 3 * Q_BYTES + 2 * SLOTS * K_BYTES + 48 + SLOTS * 32;

struct Call {
    const bf16 *q, *k, *v, *dy;
    const float *lse, *delta;
    bf16 *dq;
    int qStride, kStride, vStride, dyStride, dqStride, seq, heads, group;
    Mask mask;
    float scale, unit;
};

using Walk = QueryWalk<QUERIES>;

__device__ inline void fetchAll(const Call &call, const Walk &walk, Ring<1> queries, Ring<2> slopes, Ring<SLOTS> keys, Ring<SLOTS> values) {
    Fetcher fetcher;
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        Task task = walk.of(call, number);
        Span span = keysOf<QUERIES, KEYS>(call.mask, task.first);
        i64 row = task.token + task.first;
        fetcher.open(queries);
        fetch<QUERIES, WIDTH>(queries.at(), call.q + row * call.qStride + task.head * WIDTH, call.qStride, call.seq - task.first);
        fetcher.close(queries);
        const bf16 *k = call.k + task.token * call.kStride + task.head / call.group * WIDTH, *v = call.v + task.token * call.vStride + task.head / call.group * WIDTH;
        _Pragma("unroll 1") for (int block = span.end - 1; block >= span.begin; block--) {
            fetcher.open(keys);
            fetch<KEYS, WIDTH>(keys.at(), k + (i64)block * KEYS * call.kStride, call.kStride, call.seq - block * KEYS);
            fetcher.close(keys);
            if (block == span.end - 1) {
                fetcher.open(slopes);
                fetch<QUERIES, WIDTH>(slopes.at(), call.dy + row * call.dyStride + task.head * WIDTH, call.dyStride, call.seq - task.first);
                fetcher.close(slopes);
            }
            fetcher.open(values);
            fetch<KEYS, WIDTH>(values.at(), v + (i64)block * KEYS * call.vStride, call.vStride, call.seq - block * KEYS);
            fetcher.close(values);
        }
    }
    fetcher.flush();
}

__device__ inline void attendAll(const Call &call, const Walk &walk, Ring<1> queries, Ring<2> slopes, Ring<SLOTS> keys, Ring<SLOTS> values, int team) {
    int lane = threadIdx.x % 32, place = team * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    float logs[2], common[2], score[KEYS / 2], next[KEYS / 2], gradient[KEYS / 2], early[4];
    unsigned part[KEYS / 4], query[WIDTH / 4], slopePart[WIDTH / 4];
    Ring<SLOTS> ahead = keys, behind = keys;
    int number = blockIdx.x;
    // start sends a task's first scores. Behind the last task they are of what is there, and not used.
    auto start = [&] {
        ahead = keys;
        if (number < walk.count) {
            Task task = walk.of(call, number);
            UNROLL for (int half = 0; half < 2; half++) {
                int row = task.first + place + half * 8;
                i64 at = (task.token + row) * call.heads + task.head;
                early[half] = row < call.seq ? call.lse[at] * LOG2E : 0, early[2 + half] = row < call.seq ? call.delta[at] : 0;
            }
            queries.await();
            held<WIDTH>(query, queries.at() + team * 64 * 128, QUERIES);
            queries.release();
            queries.next();
            ahead.await();
        }
        begin();
        hold(next);
        hold(query);
        across<WIDTH>(next, query, ahead.at(), KEYS);
        send();
    };
    start();
    finish<0>();
    hold(next);
    _Pragma("unroll 1") while (number < walk.count) {
        Task task = walk.of(call, number);
        Span span = keysOf<QUERIES, KEYS>(call.mask, task.first);
        float out[WIDTH / 2];
        UNROLL for (int half = 0; half < 2; half++) logs[half] = early[half], common[half] = early[2 + half];
        unsigned slope = slopes.at() + team * 64 * 128;
        int block = span.end - 1, keep = 0;
        slopes.await();
        if (LIGHT) held<WIDTH>(slopePart, slope, QUERIES);
        auto weigh = [&] {
            UNROLL for (int i = 0; i < KEYS / 2; i++) score[i] = power(fmaf(score[i], call.unit, -logs[i / 2 % 2]));
            if (span.masked(block)) UNROLL for (int half = 0; half < 2; half++) {
                int low, high;
                call.mask.keys(task.first + place + half * 8, low, high);
                cover(score, half, low, high, block * KEYS, 0);
            }
        };
        auto slopeOf = [&] { // dy·vᵀ is under way
            values.await();
            begin();
            hold(gradient);
            if (LIGHT) across<WIDTH>(gradient, slopePart, values.at(), KEYS);
            else across<WIDTH>(gradient, slope, QUERIES, values.at(), KEYS);
            send();
        };
        auto add = [&] { // the gradient of the scores, and its product
            hold(gradient);
            values.release();
            values.next();
            UNROLL for (int i = 0; i < KEYS / 2; i++) gradient[i] = score[i] * (gradient[i] - common[i / 2 % 2]);
            narrowed(part, gradient);
            begin();
            hold(part);
            along<KEYS>(out, part, keys.at(), keep);
            send();
            keep = 1;
            behind = keys;
            keys.next();
        };
        _Pragma("unroll 1") for (; block > span.begin; block--) {
            UNROLL for (int i = 0; i < KEYS / 2; i++) score[i] = next[i];
            slopeOf();
            ahead.next();
            ahead.await();
            begin();
            hold(next);
            across<WIDTH>(next, query, ahead.at(), KEYS);
            send();
            weigh();
            finish<1>();
            hold(part);
            if (keep) behind.release();
            add();
            finish<1>();
            hold(next);
        }
        UNROLL for (int i = 0; i < KEYS / 2; i++) score[i] = next[i];
        slopeOf();
        weigh();
        finish<0>();
        hold(part);
        if (keep) behind.release();
        add();
        number = after(number);
        start();
        finish<1>();
        hold(out);
        hold(part);
        behind.release();
        slopes.release();
        slopes.next();
        int first = task.first + team * 64;
        store(call.dq + (task.token + first) * call.dqStride + task.head * WIDTH, call.dqStride, out, call.scale, call.scale, call.seq - first);
        finish<0>();
        hold(next);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
    attention_dq(const bf16 *q, const bf16 *k, const bf16 *v, const bf16 *dy, const float *lse, const float *delta, bf16 *dq, int qStride, int kStride, int vStride, int dyStride, int dqStride,
                 int seq, int heads, int group, int dim, int causal, int window, float scale, int pairs) {
    extern __shared__ char room[];
    unsigned base = (place(room) + 1023) & ~1023u, tiles = base + 3 * Q_BYTES, gates = tiles + 2 * SLOTS * K_BYTES;
    Ring<1> queries(gates, base, Q_BYTES);
    Ring<2> slopes(gates + 16, base + Q_BYTES, Q_BYTES);
    Ring<SLOTS> keys(gates + 48, tiles, K_BYTES), values(gates + 48 + SLOTS * 16, tiles + SLOTS * K_BYTES, K_BYTES);
    ready(TEAMS, queries, slopes, keys, values);
    Call call{q, k, v, dy, lse, delta, dq, qStride, kStride, vStride, dyStride, dqStride, seq, heads, group, Mask(seq, causal, window), scale, scale * LOG2E};
    Walk walk(call, pairs);
    int team = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (team == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(PRODUCER));
        fetchAll(call, walk, queries, slopes, keys, values);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(504 / 2 - PRODUCER / 2));
        attendAll(call, walk, queries, slopes, keys, values, team - 1);
    }
}
