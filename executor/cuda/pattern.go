//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"errors"
	"math/big"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// A launch that writes or sums up memory has so many blocks, which keep every
// processor of a GPU at it, and each block leaves 16 bytes of sums.
const (
	patternBlocks  = 1024
	patternThreads = 256
	sumsBytes      = 16 * patternBlocks
)

// The words of the pattern are patternFirst + i·patternStep modulo 2⁶⁴. The step is odd,
// so that no two words of a GPU are equal: a granule that is mapped twice holds what was
// written last, and both sums are others.
const (
	patternFirst = 0x243F6A8885A308D3 // the first digits of π
	patternStep  = 0x9E3779B97F4A7C15 // and of the golden ratio
)

// pattern is words first, first + step, … in memory of a GPU.
type pattern struct {
	words       int64
	first, step uint64
}

// poison is what [executor.Poison] makes of bytes, a multiple of eight.
func poison(bytes int64) pattern {
	const ones = ^uint64(0) / 0xFF
	return pattern{words: bytes / wordBytes, first: executor.Poison * ones}
}

const wordBytes = 8

// sums are what kernel checksum is to find of n words aᵢ = first + i·step, modulo 2⁶⁴:
// Σ aᵢ = n·first + step·n(n-1)/2, and Σ (i + 1)·aᵢ = first·n(n+1)/2 + step·(n-1)n(n+1)/3.
func (pattern pattern) sums() checksum.Sums {
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

// write has a stream write the pattern.
func (pattern pattern) write(kernels *kernel.Kernels, stream *driver.Stream, to driver.Address) error {
	return kernels.Launch(stream, "pattern", patternShape, func(arguments *driver.Arguments) {
		arguments.Address(to).Int64(pattern.words).Uint64(pattern.first).Uint64(pattern.step)
	})
}

var patternShape = driver.Shape{Grid: [3]uint32{patternBlocks, 1, 1}, Block: [3]uint32{patternThreads, 1, 1}}

// holds has a stream read memory, waits, and says whether the pattern is in it. sums has
// sumsBytes of pinned memory.
func (pattern pattern) holds(kernels *kernel.Kernels, stream *driver.Stream, from driver.Address, sums *driver.Pinned) (bool, error) {
	err := kernels.Launch(stream, "checksum", patternShape, func(arguments *driver.Arguments) {
		arguments.Address(from).Int64(pattern.words * wordBytes).Address(sums.Address())
	})
	if err := errors.Join(err, stream.Synchronize()); err != nil {
		return false, err
	}
	var found checksum.Sums
	for at := 0; at < sumsBytes; at += 16 {
		found.Add(checksum.Sums{Plain: binary.LittleEndian.Uint64(sums.Data[at:]), Placed: binary.LittleEndian.Uint64(sums.Data[at+8:])}, 0)
	}
	return found == pattern.sums(), nil
}

// written maps bytes of the GPU, writes the pattern, reads it back, and gives them
// back: is it right? The context must be bound.
func (gpu *witnessed) written(bytes int64) (right bool, err error) {
	arena, err := gpu.Map(bytes)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, arena.Release()) }()
	of := pattern{words: bytes / wordBytes, first: patternFirst, step: patternStep}
	if err := of.write(gpu.kernels, gpu.stream, arena.Address); err != nil {
		return false, err
	}
	return of.holds(gpu.kernels, gpu.stream, arena.Address, gpu.sums)
}
