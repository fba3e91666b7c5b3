package allocator

import (
	"math/rand/v2"
	"testing"
)

// TestCache makes random requests and checks an allocator's invariants after each: the blocks of a
// segment fill it, no two free ones are neighbours, and sums are those of the blocks.
func TestCache(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		cache := NewCache()
		var used []*Block
		for range 400 {
			if len(used) > 0 && random.IntN(5) < 2 {
				at := random.IntN(len(used))
				cache.Free(used[at])
				used = append(used[:at], used[at+1:]...)
			} else {
				size := int64(1) << random.IntN(28)
				block := cache.Alloc(random.IntN(3), size+random.Int64N(size))
				used = append(used, block)
			}
			if random.IntN(60) == 0 {
				cache.Empty()
			}
			checkTogether(t, cache, used)
		}
		for _, block := range used {
			cache.Free(block)
		}
		cache.Empty()
		if cache.Reserved != 0 || cache.Allocated != 0 {
			t.Fatalf("%d bytes reserved and %d allocated of nothing", cache.Reserved, cache.Allocated)
		}
	}
}

func checkTogether(t *testing.T, cache *Cache, used []*Block) {
	t.Helper()
	firsts := make(map[*Block]bool)
	var allocated, reserved int64
	first := func(block *Block) {
		for block.before != nil {
			block = block.before
		}
		firsts[block] = true
	}
	for _, block := range used {
		if block.free {
			t.Fatal("a block in use is free")
		}
		allocated += block.Size
		first(block)
	}
	for _, pool := range cache.pools {
		for _, block := range pool.blocks {
			first(block)
		}
	}
	for block := range firsts {
		for ; block != nil; block = block.behind {
			reserved += block.Size
			if behind := block.behind; behind != nil && (behind.before != block || behind.address != block.address+block.Size || behind.pool != block.pool || block.free && behind.free) {
				t.Fatalf("block of %d bytes at %d, free %t, then one at %d, free %t", block.Size, block.address, block.free, behind.address, behind.free)
			}
		}
	}
	if allocated != cache.Allocated || reserved != cache.Reserved || cache.PeakReserved < reserved || reserved < allocated {
		t.Fatalf("allocated %d, counted %d; reserved %d, counted %d", cache.Allocated, allocated, cache.Reserved, reserved)
	}
}

// TestCacheSizes are segments by the sizes that ask for them (get_allocation_size, should_split).
func TestCacheSizes(t *testing.T) {
	for _, is := range []struct {
		name     string
		sizes    []int64
		reserved int64
	}{
		{"small ones share 2 MiB", []int64{1, 512, 1 << 20, 900 << 10}, 2 << 20},
		{"one more does not fit", []int64{1 << 20, 1 << 20, 1}, 4 << 20},
		{"middle ones share 20 MiB", []int64{1<<20 + 1, 9 << 20, 9 << 20}, 20 << 20},
		{"large ones have their own", []int64{10 << 20, 43 << 20}, 10<<20 + 44<<20},
		{"1 MiB that is left over goes with it", []int64{19 << 20, 1 << 20}, 20<<20 + 2<<20},
	} {
		cache := NewCache()
		for _, size := range is.sizes {
			cache.Alloc(0, size)
		}
		if cache.Reserved != is.reserved {
			t.Errorf("%s: %d bytes, want %d", is.name, cache.Reserved, is.reserved)
		}
	}
	cache := NewCache()
	first := cache.Alloc(0, 64<<20)
	cache.Free(first)
	cache.Alloc(1, 64<<20) // another stream has its own
	cache.Alloc(0, 30<<20)
	if cache.Reserved != 128<<20 {
		t.Errorf("%d bytes reserved for two streams", cache.Reserved)
	}
}

// TestRests: a block is not split if at most 1 MiB would remain. That rest counts while the block
// is in use, and at the peak.
func TestRests(t *testing.T) {
	const mib = 1 << 20
	cache := NewCache()
	first := cache.Alloc(0, 43*mib)
	if cache.Rests != mib {
		t.Errorf("a tensor of 43 MiB has a rest of %d B, want 1 MiB", cache.Rests)
	}
	for range 4 { // of 20 MiB: the last gets the rest
		cache.Alloc(0, 19*mib/4)
	}
	if cache.Rests != 2*mib {
		t.Errorf("%d B of rests, want 2 MiB", cache.Rests)
	}
	cache.Free(first)
	if cache.Rests != mib || cache.PeakRests != 2*mib {
		t.Errorf("%d B of rests, %d B at the peak, want 1 and 2 MiB", cache.Rests, cache.PeakRests)
	}
}
