// Attention forward on Hopper: y = softmax(q·kᵀ)·v and the rows' log Σ exp. A thread has tiles
// copied. TEAMS teams of warps own 64 queries each. Scores of the next keys are under way while
// those of the last become weights. With TURNS, teams issue their products by turns, so that one's
// products run while another makes weights. A block on every multiprocessor goes through
// the tasks, and its copies are ahead by up to a task.
#include "hopper.h"

const int QUERIES = TEAMS * 64, Q_BYTES = QUERIES * PILE(WIDTH) * 128, K_BYTES = KEYS * PILE(WIDTH) * 128;
extern "C" __constant__ const int SHARED = OWN * Q_BYTES + 2 * SLOTS * K_BYTES + OWN * 16 + SLOTS * 32;

struct Call {
    const Map *q, *k, *v;
    bf16 *y;
    float *lse;
    int yStride, seq, heads, group;
    Mask mask;
    float unit;
};

using Walk = QueryWalk<QUERIES>;

__device__ inline void fetchAll(const Call &call, const Walk &walk, Ring<OWN> queries, Ring<SLOTS> keys, Ring<SLOTS> values) {
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        Task task = walk.of(call, number);
        Span span = keysOf<QUERIES, KEYS>(call.mask, task.first);
        int sequence = task.token / call.seq, shared = task.head / call.group;
        fill<QUERIES, WIDTH>(queries, call.q, task.first, task.head, sequence);
        _Pragma("unroll 1") for (int block = span.end - 1; block >= span.begin - 1; block--) {
            if (block >= span.begin) fill<KEYS, WIDTH>(keys, call.k, block * KEYS, shared, sequence);
            if (block < span.end - 1) fill<KEYS, WIDTH>(values, call.v, (block + 1) * KEYS, shared, sequence);
        }
    }
}

// Rows are a lane's two rows.
struct Rows {
    float most[2], total[2]; // the largest score, and the lane's part of the sum of weights
};

// weigh makes weights of scores, and returns by what sums made before shrink.
__device__ inline void weigh(const Call &call, float (&score)[KEYS / 2], Rows &rows, float (&shrink)[2], int query, int start, bool masked) {
    if (masked) {
        UNROLL for (int half = 0; half < 2; half++) {
            int low, high;
            call.mask.keys(query + half * 8, low, high);
            cover(score, half, low, high, start, NEVER);
        }
    }
    // Four chains of each row: a chain waits for its own steps.
    float most[2][4], sum[2][2], base[2];
    UNROLL for (int half = 0; half < 2; half++) {
        UNROLL for (int i = 0; i < 4; i++) most[half][i] = i ? score[i / 2 * 4 + half * 2 + i % 2] : fmaxf(rows.most[half], score[half * 2]);
        UNROLL for (int i = 4; i < KEYS / 4; i++) most[half][i % 4] = fmaxf(most[half][i % 4], score[i / 2 * 4 + half * 2 + i % 2]);
        most[half][0] = fmaxf(fmaxf(most[half][0], most[half][1]), fmaxf(most[half][2], most[half][3]));
        most[half][0] = fmaxf(most[half][0], __shfl_xor_sync(~0u, most[half][0], 1));
        most[half][0] = fmaxf(most[half][0], __shfl_xor_sync(~0u, most[half][0], 2));
        base[half] = most[half][0] == NEVER ? 0 : most[half][0] * call.unit; // a row that has seen nothing yet
        shrink[half] = power(fmaf(rows.most[half], call.unit, -base[half]));
        UNROLL for (int i = 0; i < KEYS / 4; i++) {
            float &at = score[i / 2 * 4 + half * 2 + i % 2];
            at = power(fmaf(at, call.unit, -base[half]));
            if (i < 2) sum[half][i] = at;
            else sum[half][i % 2] += at;
        }
        rows.most[half] = most[half][0], rows.total[half] = fmaf(rows.total[half], shrink[half], sum[half][0] + sum[half][1]);
    }
}

__device__ inline void attendAll(const Call &call, const Walk &walk, Ring<OWN> queries, Ring<SLOTS> keys, Ring<SLOTS> values, int team) {
    int lane = threadIdx.x % 32, place = team * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    if (TURNS && team == TEAMS - 1) teamArrive(1, 256);
    auto turn = [&] {
        if (TURNS) teamMeet(1 + team, 256);
    };
    auto pass = [&] {
        if (TURNS) teamArrive(1 + (team + 1) % TEAMS, 256);
    };
    _Pragma("unroll 1") for (int number = blockIdx.x; number < walk.count; number = after(number)) {
        Task task = walk.of(call, number);
        Span span = keysOf<QUERIES, KEYS>(call.mask, task.first);
        Rows rows{{NEVER, NEVER}, {0, 0}};
        float score[KEYS / 2], out[WIDTH / 2], shrink[2];
        unsigned weight[KEYS / 4];
        unsigned query = queries.at() + team * 64 * 128;
        int block = span.end - 1;
        queries.await();
        keys.await();
        begin();
        across<WIDTH>(score, query, QUERIES, keys.at(), KEYS);
        send();
        finish<0>();
        hold(score);
        keys.release();
        keys.next();
        weigh(call, score, rows, shrink, task.first + place, block * KEYS, span.masked(block));
        narrowed(weight, score);
        int keep = 0;
        _Pragma("unroll 1") for (block--; block >= span.begin; block--) {
            keys.await();
            turn();
            begin();
            hold(score);
            across<WIDTH>(score, query, QUERIES, keys.at(), KEYS);
            send();
            values.await();
            begin();
            hold(out);
            hold(weight);
            along<KEYS>(out, weight, values.at(), keep);
            send();
            pass();
            finish<1>();
            hold(score);
            keys.release();
            keys.next();
            weigh(call, score, rows, shrink, task.first + place, block * KEYS, span.masked(block));
            finish<0>();
            hold(out);
            hold(weight);
            values.release();
            values.next();
            UNROLL for (int i = 0; i < WIDTH / 2; i++) out[i] *= shrink[i / 2 % 2];
            narrowed(weight, score);
            keep = 1;
        }
        queries.release();
        queries.next();
        values.await();
        begin();
        hold(out);
        hold(weight);
        along<KEYS>(out, weight, values.at(), keep);
        send();
        UNROLL for (int half = 0; half < 2; half++) {
            rows.total[half] += __shfl_xor_sync(~0u, rows.total[half], 1);
            rows.total[half] += __shfl_xor_sync(~0u, rows.total[half], 2);
            int row = task.first + place + half * 8;
            if (call.lse && lane % 4 == 0 && row < call.seq) call.lse[(task.token + row) * call.heads + task.head] = fmaf(rows.most[half], call.unit, logarithm(rows.total[half])) * LN2;
        }
        finish<0>();
        hold(out);
        hold(weight);
        values.release();
        values.next();
        int first = task.first + team * 64;
        store(call.y + (task.token + first) * call.yStride + task.head * WIDTH, call.yStride, out, 1 / rows.total[0], 1 / rows.total[1], call.seq - first);
    }
}

extern "C" __global__ void __launch_bounds__(128 + TEAMS * 128, 1)
    attention(const __grid_constant__ Map q, const __grid_constant__ Map k, const __grid_constant__ Map v, bf16 *y, float *lse, int yStride, int seq,
              int heads, int group, int causal, int window, float scale, int pairs) {
    extern __shared__ __align__(1024) char room[];
    unsigned base = place(room), tiles = base + OWN * Q_BYTES, gates = tiles + 2 * SLOTS * K_BYTES;
    Ring<OWN> queries(gates, base, Q_BYTES);
    Ring<SLOTS> keys(gates + OWN * 16, tiles, K_BYTES), values(gates + OWN * 16 + SLOTS * 16, tiles + SLOTS * K_BYTES, K_BYTES);
    if (threadIdx.x == 0) {
        queries.begin(1, TEAMS * 4), keys.begin(1, TEAMS * 4), values.begin(1, TEAMS * 4);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    Call call{&q, &k, &v, y, lse, yStride, seq, heads, group, Mask(seq, causal, window), scale * LOG2E};
    Walk walk(call, pairs);
    int team = __shfl_sync(~0u, threadIdx.x / 128, 0);
    if (team == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(24));
        if (threadIdx.x == 0) fetchAll(call, walk, queries, keys, values);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(TEAMS == 2 ? 240 : 160));
        attendAll(call, walk, queries, keys, values, team - 1);
    }
}
