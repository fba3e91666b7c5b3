//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
)

// poured is a piece in its part of the ring.
type poured struct {
	piece
	skip  int64        // by which it is shifted, to lie by words as it will in the arena
	left  atomic.Int64 // bytes that are still to be read
	since time.Time    // when it was given to the GPU
	flown atomic.Bool  // whether it was

	mutex sync.Mutex
	sums  checksum.Sums // of what was read
}

// read reads bytes [from, to) of the values to where the GPU copies them from, a step
// at a time, and sums each up while it is near.
func (poured *poured) read(ctx context.Context, part *part, from, to int64) error {
	var made checksum.Sums
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step := min(to, (from/poured.Values.Step+1)*poured.Values.Step)
		begin, end := poured.skip+from-poured.from, poured.skip+step-poured.from
		if err := poured.Values.Read(part.data[begin:end], from); err != nil {
			return err
		}
		made.Add(sumOf(part.data, begin, end), 0)
		from = step
	}
	poured.mutex.Lock()
	defer poured.mutex.Unlock()
	poured.sums.Add(made, 0)
	return nil
}

// sumOf is what bytes [begin, end) of a part come to, by the part's words. Of a word
// that is cut the other bytes are zero: it is the sum of what both sides make of it.
func sumOf(data []byte, begin, end int64) (made checksum.Sums) {
	first, last := (begin+wordSize-1)/wordSize*wordSize, end/wordSize*wordSize
	var word [wordSize]byte
	if begin < first {
		copy(word[begin%wordSize:], data[begin:min(first, end)])
		made.Add(checksum.Of(word[:]), uint64(begin/wordSize))
	}
	if first < last {
		made.Add(checksum.Of(data[first:last]), uint64(first/wordSize))
	}
	if first <= last && last < end {
		word = [wordSize]byte{}
		copy(word[:], data[last:end])
		made.Add(checksum.Of(word[:]), uint64(last/wordSize))
	}
	return made
}
