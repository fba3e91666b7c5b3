#include "common.h"

// checksum adds to *sum what a range of bytes sums up to, by words of 64 bits
// (the last is filled up with zeros) whose places count: Σ mix(word + (place +
// 1)·GOLDEN), place counted from first. mix is the first round of SplitMix64's
// finalizer (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014): of two words that differ it never makes the same, so that one wrong word
// is always seen. Integers come to the same sum in any order, so blocks add atomically.
const u64 GOLDEN = 0x9E3779B97F4A7C15ull;

__device__ inline u64 mixed(u64 word, u64 place) {
    u64 x = word + (place + 1) * GOLDEN;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    return x ^ x >> 27;
}

// wordAt is a word wherever it begins, and what is left of the last.
__device__ inline u64 wordAt(const unsigned char *at, i64 left) {
    u64 word = 0;
    for (int i = 0; i < 8 && i < left; i++) word |= (u64)at[i] << 8 * i;
    return word;
}

extern "C" __global__ void __launch_bounds__(256) checksum(const unsigned char *from, i64 bytes, i64 first, u64 *sum) {
    __shared__ u64 room[8];
    u64 total = 0;
    i64 thread = (i64)blockIdx.x * 256 + threadIdx.x, threads = (i64)gridDim.x * 256;
    i64 pairs = (u64)from % 16 == 0 ? bytes / 16 : 0, words = (bytes + 7) / 8;
    _Pragma("unroll 4") for (i64 pair = thread; pair < pairs; pair += threads) {
        ulonglong2 both = ((const ulonglong2 *)from)[pair];
        total += mixed(both.x, first + 2 * pair) + mixed(both.y, first + 2 * pair + 1);
    }
    _Pragma("unroll 1") for (i64 word = 2 * pairs + thread; word < words; word += threads) total += mixed(wordAt(from + 8 * word, bytes - 8 * word), first + word);
    _Pragma("unroll") for (int away = 16; away > 0; away /= 2) total += __shfl_xor_sync(~0u, total, away);
    if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x > 0) return;
    total = 0;
    for (int i = 0; i < 8; i++) total += room[i];
    atomicAdd(sum, total);
}
