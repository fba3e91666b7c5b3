//go:build cuda && linux && cgo && amd64

package transfer

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor/weights"
)

// Values that follow each other share pieces, which end where a step does. Others do not.
func TestPieces(t *testing.T) {
	end, other := &End{}, &End{}
	ring := New(Shape{Parts: 2, Size: 100, Share: 10, Behind: 1})
	load := func(end *End, offset, bytes, step int64) Load {
		return Load{end, offset, weights.Range{Bytes: bytes, Step: step}}
	}
	for name, of := range map[string]struct {
		loads []Load
		ends  []int64 // of the pieces, in the arena
		sums  int     // stretches
	}{
		"small":    {[]Load{load(end, 0, 30, 8), load(end, 30, 30, 8), load(end, 60, 40, 8), load(end, 100, 5, 8)}, []int64{100, 105}, 1},
		"apart":    {[]Load{load(end, 0, 30, 8), load(end, 31, 30, 8)}, []int64{30, 61}, 2},
		"two ends": {[]Load{load(end, 0, 30, 8), load(other, 30, 30, 8)}, []int64{30, 60}, 2},
		"steps":    {[]Load{load(end, 0, 30, 8), load(end, 30, 100, 32)}, []int64{94, 130}, 1},
		"no room":  {[]Load{load(end, 0, 90, 8), load(end, 90, 60, 32)}, []int64{90, 150}, 1},
		"no step":  {[]Load{load(end, 0, 250, 1000)}, []int64{100, 200, 250}, 2},
	} {
		var ends []int64
		sums := make(map[*stretch]bool)
		for _, piece := range ring.pieces(of.loads) {
			ends = append(ends, piece.to)
			sums[piece.stretch] = true
			if left := piece.left.Load(); left != piece.to-piece.from {
				t.Errorf("%s: %d bytes are left of %d to %d", name, left, piece.from, piece.to)
			}
		}
		if !slices.Equal(ends, of.ends) || len(sums) != of.sums {
			t.Errorf("%s: pieces end at %d in %d stretches, want %d in %d", name, ends, len(sums), of.ends, of.sums)
		}
	}
}

// The first pieces wait for fewer later ones, and the last for none.
func TestReadyToCopy(t *testing.T) {
	ring := New(Shape{Parts: 8, Size: 10, Share: 10, Behind: 2})
	pump := &pump{upload: ring.newUpload(ring.pieces([]Load{{&End{}, 0, weights.Range{Bytes: 60, Step: 10}}}))}
	for read, want := range []int{0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 6} { // so many are read: so many are ready
		ready := 0
		for number, piece := range pump.pieces {
			piece.left.Store(0)
			if number >= read {
				piece.left.Store(10)
			}
		}
		for number := range pump.pieces {
			if pump.readyToCopy(int64(number)) {
				ready++
			}
		}
		if ready != want {
			t.Errorf("with %d of 6 pieces read, %d are ready, want %d", read, ready, want)
		}
	}
}
