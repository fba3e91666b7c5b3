package serving

import (
	"math"
	"slices"
)

// arena is the memory of one device as ggml's allocator places values in it (ggml/src/ggml-alloc.c,
// ggml_dyn_tallocr). Free blocks are in the order of their places, the last one without an end.
type arena struct {
	free      []freeBlock
	most      int64 // the end of the highest value so far
	alignment int64
}

type freeBlock struct{ at, size int64 }

func newArena(alignment int64) *arena {
	return &arena{free: []freeBlock{{0, math.MaxInt64 / 2}}, alignment: alignment}
}

// take places a value in the smallest free block that holds it; the last block comes last.
func (arena *arena) take(size int64) int64 {
	size = padded(size, arena.alignment)
	last := len(arena.free) - 1
	best := last
	for i := range arena.free[:last] {
		if block := &arena.free[i]; block.size >= size && (best == last || block.size <= arena.free[best].size) {
			best = i
		}
	}
	block := &arena.free[best]
	at := block.at
	block.at, block.size = block.at+size, block.size-size
	if block.size == 0 {
		arena.free = slices.Delete(arena.free, best, best+1)
	}
	arena.most = max(arena.most, at+size)
	return at
}

// give frees a value, and joins the block with its neighbours.
func (arena *arena) give(at, size int64) {
	size = padded(size, arena.alignment)
	i, _ := slices.BinarySearchFunc(arena.free, at, func(block freeBlock, at int64) int { return int(min(max(block.at-at, -1), 1)) })
	arena.free = slices.Insert(arena.free, i, freeBlock{at, size})
	if i+1 < len(arena.free) && at+size == arena.free[i+1].at {
		arena.free[i].size += arena.free[i+1].size
		arena.free = slices.Delete(arena.free, i+1, i+2)
	}
	if i > 0 && arena.free[i-1].at+arena.free[i-1].size == at {
		arena.free[i-1].size += arena.free[i].size
		arena.free = slices.Delete(arena.free, i, i+1)
	}
}
