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

// pieces cuts the loads, and orders the pieces of all ends round-robin.
func (ring *Ring) pieces(loads []Load) (all []*piece) {
	turns, most := make(map[*End]*cutter), 0
	var ends []*cutter
	for i := range loads {
		of := turns[loads[i].End]
		if of == nil {
			of = &cutter{ring: ring}
			turns[loads[i].End], ends = of, append(ends, of)
		}
		of.cut(&loads[i])
		most = max(most, len(of.pieces))
	}
	for turn := range most {
		for _, of := range ends {
			if turn < len(of.pieces) {
				all = append(all, of.pieces[turn])
			}
		}
	}
	return all
}

// cutter cuts the loads of an end.
type cutter struct {
	ring   *Ring
	pieces []*piece
}

// cut adds the values of a load to the last piece, if they follow it in the arena, and to new ones.
// A piece ends where a step does, if a step fits into a part.
func (cutter *cutter) cut(load *Load) {
	size, bytes, step := int64(cutter.ring.size), load.Values.Bytes, load.Values.Step
	for from := int64(0); from < bytes; {
		piece, at := cutter.last(), load.Offset+from
		fits := func(room int64) int64 {
			if bytes-from <= room {
				return bytes
			}
			return (from + room) / step * step
		}
		to := int64(0)
		if piece != nil && piece.to == at {
			to = fits(piece.from + size - at)
		}
		if to <= from {
			piece = cutter.add(load, at)
			if to = fits(size); to <= from {
				to = from + size
			}
		}
		piece.spans = append(piece.spans, span{load, from, to})
		piece.left.Add(to - from)
		piece.to += to - from
		piece.stretch.to, from = piece.to, to
	}
}

func (cutter *cutter) last() *piece {
	if len(cutter.pieces) == 0 {
		return nil
	}
	return cutter.pieces[len(cutter.pieces)-1]
}

// add adds a piece that begins at a byte of the arena. A stretch has as many pieces as the ring has
// parts.
func (cutter *cutter) add(load *Load, at int64) *piece {
	last := cutter.last()
	made := &piece{from: at, to: at, skip: at % wordSize}
	if last == nil || last.to != at || last.pieces == cutter.ring.count {
		made.stretch = &stretch{End: load.End, place: load.Values.Place, from: at}
	} else {
		made.stretch = last.stretch
	}
	made.pieces++
	cutter.pieces = append(cutter.pieces, made)
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
