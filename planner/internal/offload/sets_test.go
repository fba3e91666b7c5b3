package offload

import (
	"testing"
)

// TestLeavingOrder: every set of units is listed once, in the order of copied bytes.
func TestLeavingOrder(t *testing.T) {
	classes := []class{
		{bytes: 0, frees: 2, sets: make([][]int, 2)},
		{bytes: 3, frees: 9, sets: make([][]int, 1)},
		{bytes: 3, frees: 4, sets: make([][]int, 3)},
		{bytes: 7, frees: 5, sets: make([][]int, 2)},
	}
	order := newSetOrder(classes)
	var last int64
	seen := map[[4]uint16]bool{}
	for set, ok := order.next(); ok; set, ok = order.next() {
		var bytes, frees int64
		for c, n := range set.counts {
			bytes, frees = bytes+int64(n)*classes[c].bytes, frees+int64(n)*classes[c].frees
		}
		key := [4]uint16(set.counts)
		if bytes < last || bytes != set.bytes || frees != set.frees || seen[key] {
			t.Fatalf("%v after %d B, seen %t", set, last, seen[key])
		}
		last, seen[key] = bytes, true
	}
	if want := 3*2*4*3 - 1; len(seen) != want {
		t.Errorf("%d sets, want %d", len(seen), want)
	}
}
