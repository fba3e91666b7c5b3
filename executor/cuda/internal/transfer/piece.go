//go:build cuda && linux && cgo && amd64

package transfer

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
)

// piece is values that are in one part of the ring together: bytes [from, to) of an arena.
type piece struct {
	*stretch
	spans    []span
	from, to int64
	skip     int64        // bytes before the values, so that words align as in the arena
	left     atomic.Int64 // bytes that are still to be read
	since    time.Time    // when the GPU got it; zero: not yet
}

// span is bytes [from, to) of a load's values.
type span struct {
	*Load
	from, to int64
}

// pieces cuts loads. Values that follow each other in an arena share a piece, which ends where a step
// does, if a step fits into a part.
func (ring *Ring) pieces(loads []Load) (all []*piece) {
	last, size := &piece{to: -1}, int64(ring.size)
	for i := range loads {
		load := &loads[i]
		for from := int64(0); from < load.Values.Bytes; {
			to, at := from, load.Offset+from
			if follows := last.to == at && last.End == load.End; follows && last.from+size > at {
				to = load.upTo(from, last.from+size-at)
			}
			if to == from {
				last = ring.follow(last, load, at)
				all = append(all, last)
				if to = load.upTo(from, size); to == from {
					to = from + size
				}
			}
			last.spans = append(last.spans, span{load, from, to})
			last.left.Add(to - from)
			last.to, last.stretch.to, from = last.to+to-from, last.to+to-from, to
		}
	}
	return all
}

// upTo returns the end of the steps of values that fit into so many bytes.
func (load *Load) upTo(from, space int64) int64 {
	if load.Values.Bytes-from <= space {
		return load.Values.Bytes
	}
	return max(from, (from+space)/load.Values.Step*load.Values.Step)
}

// follow returns a new piece. A stretch has as many pieces as the ring has parts.
func (ring *Ring) follow(last *piece, load *Load, at int64) *piece {
	made := &piece{stretch: last.stretch, from: at, to: at, skip: at % wordSize}
	if last.to != at || last.End != load.End || last.pieces == ring.count {
		made.stretch = &stretch{End: load.End, place: load.Values.Place, from: at}
	}
	made.pieces++
	return made
}

// read reads a span of the piece to where the GPU copies it from, a step at a time. It adds up each
// step while it is in the cache.
func (piece *piece) read(ctx context.Context, part *part, of span) error {
	var made checksum.Sums
	shift := piece.skip + of.Offset - piece.from
	for at := of.from; at < of.to; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		step := min(of.to, (at/of.Values.Step+1)*of.Values.Step)
		begin, end := shift+at, shift+step
		if err := of.Values.Read(part.data[begin:end], at); err != nil {
			return err
		}
		made.Add(sumOf(part.data, begin, end), 0)
		at = step
	}
	piece.add(made, piece.from)
	piece.left.Add(of.from - of.to)
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
