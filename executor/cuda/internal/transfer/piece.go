//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
)

// piece is values that are in one part of the ring together.
type piece struct {
	*stretch
	from, to int64        // of the values' bytes
	skip     int64        // bytes before the values, so that words align as in the arena
	left     atomic.Int64 // bytes that are still to be read
	since    time.Time    // when the GPU got it; zero: not yet
}

// pieces cuts the loads, and orders the pieces of all ends round-robin.
func (ring *Ring) pieces(loads []Load) (all []*piece) {
	turns, most := make(map[*End][]*piece), 0
	var ends []*End
	for i := range loads {
		end := loads[i].End
		if turns[end] == nil {
			ends = append(ends, end)
		}
		turns[end] = append(turns[end], ring.cut(&loads[i])...)
		most = max(most, len(turns[end]))
	}
	for turn := range most {
		for _, end := range ends {
			if turn < len(turns[end]) {
				all = append(all, turns[end][turn])
			}
		}
	}
	return all
}

// cut cuts a load into stretches of as many pieces as the ring has parts.
func (ring *Ring) cut(load *Load) (pieces []*piece) {
	size, bytes := int64(ring.size), load.Values.Bytes
	var whole *stretch
	for from := int64(0); from < bytes; from += size {
		if whole == nil || from == whole.to {
			whole = &stretch{Load: load, from: from, to: min(from+int64(ring.count)*size, bytes)}
		}
		piece := &piece{stretch: whole, from: from, to: min(from+size, bytes), skip: (load.Offset + from) % wordSize}
		piece.left.Store(piece.to - from)
		pieces = append(pieces, piece)
		whole.pieces++
	}
	return pieces
}

// read reads bytes [from, to) of the values to where the GPU copies them from, a step at a time. It
// adds up each step while it is in the cache.
func (piece *piece) read(ctx context.Context, part *part, from, to int64) error {
	var made checksum.Sums
	for at := from; at < to; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step := min(to, (at/piece.Values.Step+1)*piece.Values.Step)
		begin, end := piece.skip+at-piece.from, piece.skip+step-piece.from
		if err := piece.Values.Read(part.data[begin:end], at); err != nil {
			return err
		}
		made.Add(sumOf(part.data, begin, end), 0)
		at = step
	}
	piece.add(made, piece.from)
	piece.left.Add(from - to)
	return nil
}

// sumOf returns the sums of bytes [begin, end) of a part, by the part's words. If a word is cut,
// its other bytes count as zero: the sums of both sides add up to the word's.
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
