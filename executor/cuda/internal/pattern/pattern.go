//go:build cuda && linux && cgo && amd64

package pattern

import (
	"encoding/binary"
	"errors"
	"math/big"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// A launch that writes or sums up memory has so many blocks, which use every processor of a GPU.
// Each block writes 16 bytes of sums.
const (
	blocks  = 1024
	threads = 256
	// SumsBytes is the size of the sums in pinned memory.
	SumsBytes = 16 * blocks
)

// The words of the pattern are first + i·step modulo 2⁶⁴. The step is odd, so that no two words of
// a GPU are equal. A granule that is mapped twice has the words that were written last, and both
// sums differ.
const (
	first = 0x243F6A8885A308D3 // the first digits of π
	step  = 0x9E3779B97F4A7C15 // and of the golden ratio
)

// Pattern is the words first, first + step, … in memory of a GPU.
type Pattern struct {
	words       int64
	first, step uint64
}

// Of must get a multiple of eight bytes. It returns the pattern that fills them.
func Of(bytes int64) Pattern { return Pattern{bytes / wordBytes, first, step} }

// Poison returns the pattern of so many bytes of [executor.Poison], a multiple of eight.
func Poison(bytes int64) Pattern {
	const ones = ^uint64(0) / 0xFF
	return Pattern{words: bytes / wordBytes, first: executor.Poison * ones}
}

const wordBytes = 8

// sums returns what kernel checksum finds for n words aᵢ = first + i·step, modulo 2⁶⁴. Σ aᵢ is
// n·first + step·n(n-1)/2. `Σ (i + 1)·aᵢ` is `first·n(n+1)/2 + step·(n-1)n(n+1)/3`.
func (pattern Pattern) sums() checksum.Sums {
	n, first, step := big.NewInt(pattern.words), new(big.Int).SetUint64(pattern.first), new(big.Int).SetUint64(pattern.step)
	one := big.NewInt(1)
	less, more := new(big.Int).Sub(n, one), new(big.Int).Add(n, one)
	product := func(divisor int64, factors ...*big.Int) *big.Int {
		made := big.NewInt(1)
		for _, factor := range factors {
			made.Mul(made, factor)
		}
		return made.Div(made, big.NewInt(divisor))
	}
	word := func(sum *big.Int) uint64 { return sum.And(sum, new(big.Int).SetUint64(^uint64(0))).Uint64() }
	plain := new(big.Int).Add(product(1, n, first), new(big.Int).Mul(step, product(2, n, less)))
	placed := new(big.Int).Add(new(big.Int).Mul(first, product(2, n, more)), new(big.Int).Mul(step, product(3, less, n, more)))
	return checksum.Sums{Plain: word(plain), Placed: word(placed)}
}

// Write queues the write of the pattern on a stream.
func (pattern Pattern) Write(kernels *kernel.Kernels, stream *driver.Stream, to driver.Address) error {
	return kernels.Launch(stream, "pattern", shape, func(arguments *driver.Arguments) {
		arguments.Address(to).Int64(pattern.words).Uint64(pattern.first).Uint64(pattern.step)
	})
}

var shape = driver.Shape{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}}

// Matches reads memory on a stream, waits, and reports whether it has the pattern. sums must have
// SumsBytes.
func (pattern Pattern) Matches(kernels *kernel.Kernels, stream *driver.Stream, from driver.Address, sums *driver.Pinned) (bool, error) {
	err := kernels.Launch(stream, "checksum", shape, func(arguments *driver.Arguments) {
		arguments.Address(from).Int64(pattern.words * wordBytes).Address(sums.Address())
	})
	if err := errors.Join(err, stream.Synchronize()); err != nil {
		return false, err
	}
	var found checksum.Sums
	for at := 0; at < SumsBytes; at += 16 {
		found.Add(checksum.Sums{Plain: binary.LittleEndian.Uint64(sums.Data[at:]), Placed: binary.LittleEndian.Uint64(sums.Data[at+8:])}, 0)
	}
	return found == pattern.sums(), nil
}
