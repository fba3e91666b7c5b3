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
		load := &Load{End: &End{Name: "arena"}, Offset: int64(offset), Values: values}
		ring := New(Shape{Parts: 3, Size: 8 * (1 + int(from)%100), Share: 8, Behind: 2})
		sums := make(map[*stretch]bool)
		for _, piece := range ring.cut(load) {
			part := &part{data: bytes.Repeat([]byte{0xFF}, ring.size+wordSize)}
			middle := piece.from + int64(step)%(piece.to-piece.from+1)
			for _, share := range [][2]int64{{middle, piece.to}, {piece.from, middle}} {
				if err := piece.read(t.Context(), part, share[0], share[1]); err != nil {
					t.Fatal(err)
				}
			}
			sums[piece.stretch] = true
		}
		whole := int64(0)
		for stretch := range sums {
			whole += stretch.to - stretch.from
			skip := (load.Offset + stretch.from) % wordSize
			if err := stretch.judge(slowSums(append(make([]byte, skip), data[stretch.from:stretch.to]...))); err != nil {
				t.Error(err)
			}
		}
		if whole != size {
			t.Errorf("stretches of %d bytes, want %d", whole, size)
		}
	})
}
