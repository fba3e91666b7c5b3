//go:build cuda && linux && cgo && amd64

package checksum

/*
#cgo CFLAGS: -O3
#include <stddef.h>
#include <stdint.h>

typedef uint64_t four __attribute__((vector_size(32), aligned(8), may_alias));
typedef struct { uint64_t plain, placed; } sums;

// Sixteen lanes each add words up, and what they have so far with each: of n words
// of a lane the first is in that n times, the last once. Nothing is multiplied. Row
// r of a lane is word 16r + lane, and rows - r times in what is behind.
#define LANES                                                                                            \
	four plain[4] = {{0}}, behind[4] = {{0}};                                                        \
	const four *words = at;                                                                          \
	for (size_t row = 0; row < rows; row++)                                                          \
		for (int i = 0; i < 4; i++) behind[i] += plain[i] += words[4 * row + i];                 \
	sums all = {0, 0};                                                                               \
	for (int lane = 0; lane < 16; lane++) {                                                          \
		uint64_t one = plain[lane / 4][lane % 4];                                                \
		all.plain += one;                                                                        \
		all.placed += (lane + 1) * one + 16 * (rows * one - behind[lane / 4][lane % 4]);         \
	}                                                                                                \
	return all

__attribute__((target("avx2"))) static sums wide(const void *at, size_t rows) { LANES; }
static sums narrow(const void *at, size_t rows) { LANES; }

static sums checksum(const void *at, size_t rows) {
	return __builtin_cpu_supports("avx2") ? wide(at, rows) : narrow(at, rows);
}
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"unsafe"
)

// Sums are sums of words w₀, w₁ … of 64 bits: Σ wᵢ and Σ (i + 1)·wᵢ, modulo 2⁶⁴. The first always
// shows a single wrong word, the second words that changed places.
type Sums struct{ Plain, Placed uint64 }

func (sums Sums) String() string { return fmt.Sprintf("%016x%016x", sums.Plain, sums.Placed) }

// Add adds the sums of more words; first is how many words come before them.
func (sums *Sums) Add(other Sums, first uint64) {
	sums.Plain += other.Plain
	sums.Placed += other.Placed + first*other.Plain
}

// row is how many bytes an iteration of the loop takes.
const row = 128

// Of only sums up whole words. It ignores up to seven bytes at the end of data.
func Of(data []byte) (all Sums) {
	rows := len(data) / row
	if rows > 0 {
		made := C.checksum(unsafe.Pointer(unsafe.SliceData(data)), C.size_t(rows))
		all = Sums{uint64(made.plain), uint64(made.placed)}
	}
	rest := data[rows*row:]
	for number := uint64(rows * row / 8); len(rest) >= 8; rest = rest[8:] {
		number++
		word := binary.LittleEndian.Uint64(rest)
		all.Plain += word
		all.Placed += number * word
	}
	return all
}
