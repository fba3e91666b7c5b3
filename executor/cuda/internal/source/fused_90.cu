// fused runs operations of a decode step one after another in one launch, a block on
// every multiprocessor. Weights are read once. They come in slots of shared memory, as
// many as there is room for, without a look at which operation needs them: while
// blocks wait for each other, or attend, those of the next operations arrive.
//
// The order of every sum depends on its length alone, so bits do not depend on how many
// multiprocessors there are.
#include "stage.h"

struct Fused {
    const Op *ops;
    i64 count, rows, slots;
    unsigned *arrived;
    int *since; // how many tokens were generated
};

// Ring is the slots as one role goes through them.
struct Ring {
    Gate *come, *gone;
    char *data;
    int slots, slot, apart;
    unsigned round;
    __device__ char *at() const { return data + slot * (ROWS * apart); }
    __device__ void next() {
        if (++slot == slots) slot = 0, round ^= 1;
    }
};

struct Shared {
    Gate come[DEEPEST], gone[DEEPEST], xCome[PIECES], xGone[PIECES], full[2], empty[2];
    Op work[2], finish[2], weights[2], values[2];
    Task<bf16> task;
    float room[MULTIPLY];
};

// rolesMeet: the roles that have read the number of the launch and since wait for each other. So
// no block arrives before all of them have read both, and block 0 writes both only after that.
__device__ inline void rolesMeet() { asm volatile("bar.sync 3, %0;" ::"n"(FUSED - 32) : "memory"); }

// fetchWeights has the rows of every tile come, of both of its groups.
__device__ void fetchWeights(const Fused &of, Op *room, Ring ring) {
    bool copies = elected();
    Ring late = ring; // UNDERWAY slots behind
    int begun = 0;
    Ops ops{of.ops, of.count, room, (int)threadIdx.x % 32};
    ops.fetch(0);
    for (int number = 0; number < of.count; number++) {
        const Op &op = ops.get(number, [] { __syncwarp(); });
        if (op.kind > TURNED) continue;
        int inner = (int)op.inner, tiles = (int)op.tiles;
        _Pragma("unroll 1") for (int tile = firstOf(op); tile < tiles; tile += gridDim.x) {
            int place = tile, own = partOf(op, place), count[2];
            const bf16 *from[2];
            const Part &part = op.parts[own], &other = op.parts[op.kind == GATED ? 1 : own];
            _Pragma("unroll") for (int j = 0; j < 2; j++) {
                const Part &of = j ? other : part;
                int row = columnOf(op, place, j);
                from[j] = of.weight + row * of.stride, count[j] = max(min((int)of.rows - row, 8), 0);
            }
            i64 stride = part.stride, second = other.stride;
            _Pragma("unroll 1") for (int at = 0; at < inner; at += LENGTH, ring.next()) {
                unsigned bytes = (unsigned)min(LENGTH, inner - at) * 2;
                if (begun++ >= UNDERWAY) late.come[late.slot].await(late.round), late.next();
                ring.gone[ring.slot].await(ring.round ^ 1);
                if (!copies) continue;
                Gate &come = ring.come[ring.slot];
                come.expect((count[0] + count[1]) * bytes);
                come.copy<8>(ring.at(), ring.apart, from[0] + at, stride, count[0], bytes);
                come.copy<8>(ring.at() + 8 * ring.apart, ring.apart, from[1] + at, second, count[1], bytes);
            }
            __syncwarp();
        }
    }
}

// fetchValues has x come if it is not staged.
__device__ void fetchValues(const Fused &of, Shared &room, char *xs) {
    bool copies = elected();
    unsigned turn = 0;
    Ops ops{of.ops, of.count, room.values, (int)threadIdx.x % 32};
    ops.fetch(0);
    Grid grid{of.arrived, of.count};
    rolesMeet();
    for (int number = 0; number < of.count; number++) {
        const Op &op = ops.get(number, [] { __syncwarp(); });
        if (op.kind > TURNED || op.staged) continue;
        int inner = (int)op.inner, tiles = (int)op.tiles, rows = (int)op.rows;
        if (copies) grid.await((unsigned)number);
        __syncwarp();
        asm volatile("fence.proxy.async;" ::: "memory"); // what others stored, for copies
        _Pragma("unroll 1") for (int tile = firstOf(op); tile < tiles; tile += gridDim.x)
            _Pragma("unroll 1") for (int at = 0; at < inner; at += LENGTH, turn++) {
                unsigned bytes = (unsigned)min(LENGTH, inner - at) * 2;
                room.xGone[turn % 2].await(turn / 2 % 2 ^ 1);
                if (!copies) continue;
                room.xCome[turn % 2].expect(rows * bytes);
                room.xCome[turn % 2].copy<ROWS>(xs + turn % 2 * rows * APART, APART, op.x + at, op.xStride, rows, bytes);
            }
        __syncwarp();
    }
}

// attend is an operation ATTEND, for the warps that multiply. Before ready, keys and
// values of earlier tokens come to the L2 cache, as many as there is room for.
template <class Ready> __device__ void attend(const Op &op, int since, Task<bf16> &task, char *room, Ready ready) {
    int groups = (int)op.kv * (((int)op.heads / (int)op.kv + HEADS - 1) / HEADS), rows = (int)op.rows, tiles = (int)op.tiles;
    auto taskOf = [&](int item) {
        return Task<bf16>(op.q, op.keys, op.values, op.y, op.sums, op.heads, op.kv, op.dim, op.past + since, op.scale, op.cap, op.positions, op.span,
                          Span{item / (groups * rows), item % groups, item / groups % rows, rows});
    };
    bool begun = false;
    for (int item = firstOf(op); item < tiles || !begun; item += gridDim.x) {
        if (threadIdx.x == 0 && item < tiles) task = taskOf(item);
        workersMeet();
        if (!begun) {
            begun = true;
            int lines = ((int)op.dim + 63) / 64, count = item < tiles ? min((task.width - 1) * lines, 1024) : 0;
            for (int i = threadIdx.x; i < count; i += WORKERS) {
                i64 row = task.row + i / lines, column = task.column + i % lines * 64;
                asm volatile("prefetch.global.L2 [%0];" ::"l"(task.keys.at(row, column)));
                asm volatile("prefetch.global.L2 [%0];" ::"l"(task.values.at(row, column)));
            }
            ready();
            if (item >= tiles) break;
        }
        wideDecode<1>(task, *(Wide<MULTIPLY, 1, 64> *)room, workersMeet);
        workersMeet();
    }
}

// join is an operation JOIN: as attention_join.
__device__ void join(const Op &op) {
    auto read = [](const float *at) {
        float value;
        asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(at) : "memory");
        return value;
    };
    int dim = (int)op.dim, each = (int)op.heads * dim;
    for (int i = blockIdx.x * WORKERS + threadIdx.x; i < op.rows * each; i += gridDim.x * WORKERS) {
        int row = i / each, value = i % each, first = value / dim * (dim + 2);
        float most = NOTHING, sum = 0, weight = 0;
        for (i64 part = 0; part < op.spans; part++) most = fmaxf(most, read(op.sums.at(part * op.rows + row, first + dim)));
        for (i64 part = 0; part < op.spans; part++) {
            const float *one = op.sums.at(part * op.rows + row, first);
            float scale = expf(read(one + dim) - most);
            sum = fmaf(scale, read(one + value % dim), sum), weight = fmaf(scale, read(one + dim + 1), weight);
        }
        *op.y.at(row, value) = narrow<bf16>(sum / weight);
    }
}

// search is what is first in the logits, of one warp: 1 NaN, 2 infinite, 3 negative infinite.
__device__ __noinline__ int search(const Op &op) {
    const Part &part = op.parts[0];
    for (i64 row = 0; row < op.rows; row++)
        for (i64 first = 0; first < part.rows; first += 32) {
            i64 column = first + threadIdx.x % 32;
            unsigned short bits = 0;
            if (column < part.rows) asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(bits) : "l"(part.to + row * part.apart + column) : "memory");
            int kind = (bits & 0x7f80) < 0x7f80 ? 0 : bits & 0x7f ? 1 : bits >> 15 ? 3 : 2;
            if (unsigned all = __ballot_sync(~0u, kind)) return __shfl_sync(~0u, kind, __ffs(all) - 1);
        }
    return 0;
}

// pick is an operation PICK, of one warp.
__device__ void pick(const Op &op, int since) {
    int lane = threadIdx.x % 32;
    for (int row = blockIdx.x; row < op.rows; row += gridDim.x) {
        Best best = Best::none();
        bool bad = false;
        for (int block = lane; block < gridDim.x; block += 32) {
            const float *at = op.sums.at(row, 2 * block);
            float value;
            int column;
            asm volatile("ld.global.cg.v2.b32 {%0, %1}, [%2];" : "=f"(value), "=r"(column) : "l"(at) : "memory");
            bad |= column < 0;
            best.add(value, column & ~BAD);
        }
        best.over(32);
        int id = best.column == 0x7fffffff ? 0 : best.column;
        if (lane == 0) op.ids[row] = id;
        if (lane == 0 && op.said) op.said[since % 2 * ROWS + row] = id;
        if (op.found && __any_sync(~0u, bad)) {
            int kind = search(op);
            if (lane == 0) *(volatile u64 *)op.found = 4 * op.area + kind;
        }
    }
}

// threadAnew is threadIdx.x. The compiler computes what depends on it again, and keeps no registers
// for it through other operations. Spilled registers would come from the L2 cache after each barrier.
__device__ inline int threadAnew() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

// Slot is a lane's part of a slot of weights, in registers. Where rows of weights lie in the same
// banks, the odd ones read the halves of 128 bytes the other way round.
struct Slot {
    uint4 low[LENGTH / WORKERS / 2][2], high[LENGTH / WORKERS / 2][2];

    template <bool WIDE> __device__ void read(const char *weights, int thread, int left) {
        int lane = thread % 32, g = lane / 4;
        const uint4 none = make_uint4(0, 0, 0, 0);
        const char *from = weights + g * weightsApart(WIDE), *other = from + 8 * weightsApart(WIDE);
        bool odd = !WIDE && g % 2;
        _Pragma("unroll") for (int u = 0; u < LENGTH / WORKERS / 2; u++)
            _Pragma("unroll") for (int half = 0; half < 2; half++) {
                int at = (u * MULTIPLY + thread / 32) * 64 + lane % 4 * 8 + (odd ? 32 - half * 32 : half * 32);
                low[u][half] = at < left ? *(const uint4 *)(from + at * 2) : none, high[u][half] = at < left ? *(const uint4 *)(other + at * 2) : none;
            }
    }

    // times adds it to sums of x's rows below eight and, if it is wide, of the others. Two sums
    // of each are added up later, so that a product waits for the one before the last.
    template <bool WIDE> __device__ void times(float (&sum)[2][2][4], const char *x, int thread, int apart, int rows, int left) const {
        int lane = thread % 32, g = lane / 4;
        const uint4 none = make_uint4(0, 0, 0, 0);
        bool odd = !WIDE && g % 2;
        _Pragma("unroll") for (int u = 0; u < LENGTH / WORKERS / 2; u++)
            _Pragma("unroll") for (int half = 0; half < 2; half++) {
                int at = (u * MULTIPLY + thread / 32) * 64 + lane % 4 * 8 + half * 32;
                uint4 first = odd ? low[u][1 - half] : low[u][half], second = odd ? high[u][1 - half] : high[u][half];
                timesWeights(sum[0][half], first, second, at < left && g < rows ? *(const uint4 *)(x + g * apart + at * 2) : none);
                if (WIDE) timesWeights(sum[1][half], first, second, at < left && g + 8 < rows ? *(const uint4 *)(x + (g + 8) * apart + at * 2) : none);
            }
    }
};

// multiply is for the warps that do. They read the first slot of an operation before its x is there.
__device__ void multiply(const Fused &of, Shared &room, Ring ring, char *xs, float *sums) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    Ops ops{of.ops, of.count, room.work, (int)threadIdx.x};
    ops.fetch(0);
    Grid grid{of.arrived, of.count};
    unsigned number = 0, turn = 0;
    int since = *of.since;
    rolesMeet();
    _Pragma("unroll 1") for (unsigned done = 0; done < of.count; done++) {
        workersMeet(); // all have done with the operation before, whose room the next one's next takes
        const Op &op = ops.get(done, workersMeet);
        auto ready = [&] {
            if (threadIdx.x == 0) grid.await(done);
            workersMeet();
        };
        if (op.kind > TURNED) {
            if (op.kind == ATTEND) attend(op, since, room.task, xs, ready);
            else if (ready(); op.kind == JOIN) join(op);
            else if (warp == 0) pick(op, since);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            workersMeet();
            if (threadIdx.x == 0) grid.arrive();
            continue;
        }
        int rows = (int)op.rows, inner = (int)op.inner, tiles = (int)op.tiles, begin = firstOf(op);
        bool staged = op.staged;
        int apart = staged ? stretch(inner) : APART;
        Slot held;
        int thread = threadAnew();
        auto take = [&](int left) {
            ring.come[ring.slot].await(ring.round);
            if (rows > 8) held.read<true>(ring.at(), thread, left);
            else held.read<false>(ring.at(), thread, left);
            __syncwarp();
            if (lane == 0) ring.gone[ring.slot].arrive();
            ring.next();
        };
        if (begin < tiles) take(inner);
        if (staged) stage(op, xs, room.room, ready);
        _Pragma("unroll 1") for (int tile = begin; tile < tiles; tile += gridDim.x, number++) {
            float sum[2][2][4] = {};
            _Pragma("unroll 1") for (int at = 0; at < inner; at += LENGTH) {
                const char *x = staged ? xs + at * 2 : xs + turn % 2 * rows * APART;
                if (!staged) room.xCome[turn % 2].await(turn / 2 % 2);
                if (rows > 8) held.times<true>(sum, x, thread, apart, rows, inner - at);
                else held.times<false>(sum, x, thread, apart, rows, inner - at);
                if (!staged) {
                    __syncwarp();
                    if (lane == 0) room.xGone[turn % 2].arrive();
                    turn++;
                }
                if (at + LENGTH < inner) take(inner - at - LENGTH);
            }
            room.empty[number % 2].await(number / 2 % 2 ^ 1);
            float *to = sums + (number % 2 * MULTIPLY + warp) * 16 * rows;
            _Pragma("unroll") for (int half = 0; half < 2; half++)
                _Pragma("unroll") for (int i = 0; i < 4; i++) {
                    int row = half * 8 + 2 * t + i % 2;
                    if (row < rows) to[(i / 2 * rows + row) * 8 + g] = sum[half][0][i] + sum[half][1][i];
                }
            __syncwarp();
            if (lane == 0) room.full[number % 2].arrive();
            if (tile + gridDim.x < tiles) take(inner);
        }
    }
}

// More is what finishing a column of each group needs other than sums: it is read
// before they are there.
struct More { float add[2], bias[2], cosine, sine; };

__device__ inline More moreOf(const Op &op, int number, i64 row, int first, int second, int position) {
    More more = {};
    int at[2] = {first, second};
    _Pragma("unroll") for (int j = 0; j < 2; j++) {
        const Part &part = op.parts[op.kind == GATED ? j : number];
        if (at[j] >= part.rows) continue;
        if (part.bias) more.bias[j] = widen(part.bias[at[j]]);
        if (op.kind == PLAIN && op.add) {
            unsigned short bits;
            asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(bits) : "l"(op.add + row * op.addStride + at[j]) : "memory");
            more.add[j] = widen(bf16{bits});
        }
    }
    if (op.kind == TURNED && number < 2) {
        float2 both = cosineAndSine<bf16>((float)position * op.turn[first % (int)op.dim]);
        float factor = (float)op.factor;
        more.cosine = rounded<bf16>(both.x * factor), more.sine = rounded<bf16>(both.y * factor);
    }
    return more;
}

__device__ inline bool isFinite(float value) { return fabsf(value) < __int_as_float(0x7f800000); }

// put finishes a column of each group, and returns what PLAIN stores.
__device__ inline float2 put(const Op &op, int number, i64 row, int first, int second, float one, float two, const More &more, int position) {
    const Part &part = op.parts[number];
    bf16 *to = part.to + row * part.apart;
    one = rounded<bf16>(one + more.bias[0]), two = rounded<bf16>(two + more.bias[1]);
    if (op.kind == GATED) {
        if (first < part.rows) to[first] = narrow<bf16>(rounded<bf16>(activated<bf16>(op.activation, one)) * two);
        return {};
    }
    if (op.kind == PLAIN) {
        if (op.add) one += more.add[0], two += more.add[1];
    } else {
        if (number < 2) turned<bf16>(one, two, more.cosine, more.sine);
        if (number > 0) to = part.to + (row * op.positions + position % (int)op.positions) * part.apart;
    }
    one = rounded<bf16>(one), two = rounded<bf16>(two);
    if (first < part.rows) to[first] = narrow<bf16>(one);
    if (second < part.rows) to[second] = narrow<bf16>(two);
    return {one, two};
}

// finish adds up what the warps have made of a tile, and puts it where it goes.
__device__ void finish(const Fused &of, Shared &room, const float *sums) {
    int lane = threadIdx.x % 32, own = (int)threadIdx.x / 32 - VALUES - 1, since = *of.since;
    auto meet = [] { asm volatile("bar.sync 2, %0;" ::"n"(FINISH * 32) : "memory"); };
    auto rowOf = [&](int i) { return (own * FOURS + i) * 4 + lane / 8; };
    Ops ops{of.ops, of.count, room.finish, (int)threadIdx.x - (VALUES + 1) * 32};
    ops.fetch(0);
    Grid grid{of.arrived, of.count};
    rolesMeet();
    unsigned number = 0;
    bool ends = false; // the step
    _Pragma("unroll 1") for (unsigned done = 0; done < of.count; done++) {
        const Op &op = ops.get(done, meet);
        ends = op.kind == PICK && op.said;
        if (op.kind > TURNED) continue;
        if (lane == 0) grid.await(done);
        __syncwarp();
        int rows = (int)op.rows, tiles = (int)op.tiles, position = (int)op.past + since;
        Best best[FOURS];
        bool bad[FOURS] = {};
        _Pragma("unroll") for (auto &one : best) one = Best::none();
        _Pragma("unroll 1") for (int tile = firstOf(op); tile < tiles; tile += gridDim.x, number++) {
            int place = tile, which = partOf(op, place), first = columnOf(op, place, 0) + lane % 8, second = columnOf(op, place, 1) + lane % 8;
            More more[FOURS] = {};
            _Pragma("unroll") for (int i = 0; i < FOURS; i++) if (rowOf(i) < rows) more[i] = moreOf(op, which, rowOf(i), first, second, position);
            room.full[number % 2].await(number / 2 % 2);
            const float *from = sums + number % 2 * MULTIPLY * 16 * rows + own * FOURS * 32 + lane;
            _Pragma("unroll") for (int i = 0; i < FOURS; i++, from += 32) {
                if (rowOf(i) >= rows) break;
                float one = 0, two = 0;
                _Pragma("unroll") for (int other = 0; other < MULTIPLY; other++) one += from[other * 16 * rows], two += from[(other * 2 + 1) * 8 * rows];
                float2 made = put(op, which, rowOf(i), first, second, one, two, more[i], position);
                if (!op.sums.data) continue;
                if (first < op.parts[0].rows) bad[i] |= !isFinite(made.x);
                if (second < op.parts[0].rows) bad[i] |= !isFinite(made.y);
                if (first < op.parts[0].rows && made.x > best[i].value) best[i] = {made.x, first};
                if (second < op.parts[0].rows && made.y > best[i].value) best[i] = {made.y, second};
            }
            __syncwarp();
            if (lane == 0) room.empty[number % 2].arrive();
        }
        if (op.sums.data)
            _Pragma("unroll") for (int i = 0; i < FOURS; i++) {
                best[i].over(8);
                unsigned any = __ballot_sync(~0u, bad[i]) >> (lane & 24) & 255;
                if (any) best[i].column |= BAD;
                if (lane % 8 == 0 && rowOf(i) < rows) *(float2 *)op.sums.at(rowOf(i), 2 * blockIdx.x) = {best[i].value, __int_as_float(best[i].column)};
            }
        meet();
        if (lane == 0 && own == 0) grid.arrive();
    }
    if (blockIdx.x > 0 || lane > 0 || own > 0) return;
    grid.await(max((unsigned)of.count - 1, 1u)); // then all roles of all blocks have read what is written here
    of.arrived[1] = grid.launch + 1;
    if (ends) *of.since = since + 1;
}

extern "C" __global__ void __launch_bounds__(FUSED, 1) fused(const __grid_constant__ Fused of) {
    extern __shared__ __align__(128) uint4 data[];
    __shared__ __align__(128) Shared room;
    int apart = weightsApart(of.rows > 8);
    char *xs = (char *)data + of.slots * ROWS * apart;
    int warp = threadIdx.x / 32;
    if (threadIdx.x < of.slots) room.come[threadIdx.x].init(1), room.gone[threadIdx.x].init(MULTIPLY);
    if (threadIdx.x < PIECES) room.xCome[threadIdx.x].init(1), room.xGone[threadIdx.x].init(MULTIPLY);
    if (threadIdx.x < 2) room.full[threadIdx.x].init(MULTIPLY), room.empty[threadIdx.x].init(FINISH);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    float *sums = (float *)xs;
    xs += 2 * MULTIPLY * 16 * of.rows * 4;
    Ring ring{room.come, room.gone, (char *)data, (int)of.slots, 0, apart, 0};
    if (warp < MULTIPLY) multiply(of, room, ring, xs, sums);
    else if (warp == WEIGHTS) fetchWeights(of, room.weights, ring);
    else if (warp == VALUES) fetchValues(of, room, xs);
    else finish(of, room, sums);
}

// table has the operations of all decode steps of the GPU, each with what blocks meet at.
__device__ uint4 table[1 << 16];
