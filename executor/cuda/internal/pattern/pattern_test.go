//go:build cuda && linux && cgo && amd64

package pattern

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/checksum"
)

// TestSums: what a pattern's sums are said to be is what its words come to.
func TestSums(t *testing.T) {
	for _, words := range []int64{0, 1, 2, 3, 1000, 4099} {
		for _, of := range []Pattern{
			Poison(8 * words), Of(8 * words), {words, rand.Uint64(), rand.Uint64()},
		} {
			data := make([]byte, 8*words)
			for i := range words {
				binary.LittleEndian.PutUint64(data[8*i:], of.first+uint64(i)*of.step)
			}
			if got, want := of.sums(), checksum.Of(data); got != want {
				t.Errorf("%+v: %v, want %v", of, got, want)
			}
		}
	}
	if of := Poison(16); of.first != ^uint64(0) || of.words != 2 {
		t.Errorf("%+v", of)
	}
}
