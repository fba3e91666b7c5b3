//go:build cuda && linux && cgo && amd64

package checksum

import (
	"math/rand/v2"
	"testing"
)

// slow are the sums as they are written down.
func slow(data []byte) (all Sums) {
	for i := range data {
		word := uint64(data[i]) << (i % 8 * 8)
		all.Plain += word
		all.Placed += uint64(i/8+1) * word
	}
	return all
}

// TestOf: sums equal their definition, for any number of words at any place. Sums of two parts add
// up to the sums of both.
func TestOf(t *testing.T) {
	t.Parallel()
	data := make([]byte, 5000)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	for words := range 600 {
		begin := rand.IntN(8)
		one := data[begin:][:8*words]
		want := slow(one)
		if got := Of(one); got != want {
			t.Errorf("%d words at %d: %v, want %v", words, begin, got, want)
		}
		cut := rand.IntN(words + 1)
		both := Of(one[:8*cut])
		both.Add(Of(one[8*cut:]), uint64(cut))
		if both != want {
			t.Errorf("%d words cut at %d: %v, want %v", words, cut, both, want)
		}
		if words > 0 {
			one[rand.IntN(len(one))] ^= 1 << rand.IntN(8)
			if got := Of(one); got.Plain == want.Plain {
				t.Errorf("a wrong byte of %d words is not seen", words)
			}
		}
	}
}

// BenchmarkOf is what it takes to sum up what was read, from a processor's cache.
func BenchmarkOf(b *testing.B) {
	data := make([]byte, 512<<10)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Of(data)
	}
}
