//go:build cuda && linux && cgo && amd64

package transfer

import (
	"bytes"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
	"github.com/devmap-dev/devmap/executor/weights"
)

// slowSums are sums as kernel checksum is said to make them.
func slowSums(data []byte) (all checksum.Sums) {
	for i := range data {
		word := uint64(data[i]) << (i % 8 * 8)
		all.Plain += word
		all.Placed += uint64(i/8+1) * word
	}
	return all
}

// FuzzSums: what is read in whatever steps, to wherever, sums up to what a GPU finds
// in the same words.
func FuzzSums(f *testing.F) {
	f.Add([]byte("every word of it counts, and so does its place in the row of words"), uint16(3), uint16(7), uint16(40))
	f.Add(bytes.Repeat([]byte{0xFF}, 200), uint16(0), uint16(8), uint16(199))
	f.Fuzz(func(t *testing.T, data []byte, from, step, offset uint16) {
		size := int64(len(data))
		if size == 0 {
			return
		}
		read := func(into []byte, from int64) error {
			copy(into, data[from:])
			return nil
		}
		values := weights.Range{Bytes: size, Step: int64(step) + 1, Read: read}
		end := &End{Name: "arena"}
		middle := int64(step) % size // where a second load begins
		second := values
		second.Bytes, second.Read = size-middle, func(into []byte, from int64) error { return read(into, middle+from) }
		values.Bytes = middle
		loads := []Load{{End: end, Offset: int64(offset), Values: values}, {End: end, Offset: int64(offset) + middle, Values: second}}
		ring := New(Shape{Parts: 3, Size: 8 * (1 + int(from)%100), Share: 8, Behind: 2})
		sums := make(map[*stretch]bool)
		for _, piece := range ring.pieces(loads) {
			part := &part{data: bytes.Repeat([]byte{0xFF}, ring.size+wordSize)}
			for _, whole := range piece.spans {
				middle := whole.from + int64(step)%(whole.to-whole.from+1)
				for _, share := range []span{{whole.Load, middle, whole.to}, {whole.Load, whole.from, middle}} {
					if err := piece.read(t.Context(), part, share); err != nil {
						t.Fatal(err)
					}
				}
			}
			if piece.left.Load() != 0 {
				t.Errorf("%d bytes of a piece are left", piece.left.Load())
			}
			sums[piece.stretch] = true
		}
		whole := int64(0)
		for stretch := range sums {
			whole += stretch.to - stretch.from
			skip, from, to := stretch.from%wordSize, stretch.from-int64(offset), stretch.to-int64(offset)
			if err := stretch.judge(slowSums(append(make([]byte, skip), data[from:to]...))); err != nil {
				t.Error(err)
			}
		}
		if whole != size {
			t.Errorf("stretches of %d bytes, want %d", whole, size)
		}
	})
}
