#include "common.h"

// checksum sums the bytes [from, from + bytes) up twice, by words w₀, w₁ … of 64
// bits: Σ wᵢ and Σ (i + 1)·wᵢ, as Fletcher does (An Arithmetic Checksum for Serial
// Transmissions, 1982), modulo 2⁶⁴. Words are the aligned ones that hold the bytes,
// with zeros for what lies outside of the range. A single wrong word is always seen
// by the first sum, words that changed places by the second. Sums of integers are
// the same in any order: a block leaves its share of both in sums, and who adds
// them up is the host, so that sums may lie in its memory.
extern "C" __global__ void __launch_bounds__(256) checksum(const unsigned char *from, i64 bytes, u64 *sums) {
    __shared__ u64 room[2][8];
    unsigned skip = (u64)from % 8, over = (skip + bytes) % 8;
    const u64 *words = (const u64 *)(from - skip);
    i64 count = (skip + bytes + 7) / 8, threads = (i64)gridDim.x * 256;
    u64 plain = 0, placed = 0;
    _Pragma("unroll 8") for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < count; i += threads) {
        u64 word = words[i];
        if (i == 0) word = word >> 8 * skip << 8 * skip;
        if (i == count - 1 && over) word &= (1ull << 8 * over) - 1;
        plain += word;
        placed += (u64)(i + 1) * word;
    }
    _Pragma("unroll") for (int away = 16; away > 0; away /= 2) {
        plain += __shfl_xor_sync(~0u, plain, away);
        placed += __shfl_xor_sync(~0u, placed, away);
    }
    if (threadIdx.x % 32 == 0) room[0][threadIdx.x / 32] = plain, room[1][threadIdx.x / 32] = placed;
    __syncthreads();
    if (threadIdx.x > 1) return;
    u64 total = 0;
    for (int i = 0; i < 8; i++) total += room[threadIdx.x][i];
    sums[2 * blockIdx.x + threadIdx.x] = total;
}
