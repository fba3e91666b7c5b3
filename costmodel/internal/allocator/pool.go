package allocator

import "slices"

// Pool cuts blocks as PyTorch's caching allocator does if nothing is freed
// (CUDACachingAllocator.cpp, torch 2.11: get_pool, get_free_block, alloc_block, should_split).
// Small requests come from segments of 2 MiB, larger ones from 20 MiB, the largest from their own.
// A rest is kept for the next request, or goes with the block if too small.
type Pool struct {
	small, large []int64 // blocks that are left over, ascending
}

// Alloc is the size of the block that a request of size bytes gets.
func (pool *Pool) Alloc(size int64) int64 {
	const quantum, smallest, segment, shared, own = 512, 1 << 20, 2 << 20, 20 << 20, 10 << 20
	size = max(quantum, (size+quantum-1)/quantum*quantum)
	free, least, fresh := &pool.large, int64(smallest+1), int64(shared)
	switch {
	case size <= smallest:
		free, least, fresh = &pool.small, quantum, segment
	case size >= own:
		fresh = (size + segment - 1) / segment * segment
	}
	block := fresh
	if at, _ := slices.BinarySearch(*free, size); at < len(*free) {
		block = (*free)[at]
		*free = slices.Delete(*free, at, at+1)
	}
	if rest := block - size; rest >= least {
		at, _ := slices.BinarySearch(*free, rest)
		*free = slices.Insert(*free, at, rest)
		return size
	}
	return block
}
