// Package allocator is how PyTorch's caching allocator cuts the blocks that tensors lie in.
package allocator

// Rounding is the size of the block that a tensor takes less its own, as CUDACachingAllocator.cpp
// (torch 2.11) cuts them: requests are rounded to 512 B (round_size); one of 10 MiB or more gets a
// segment of a multiple of 2 MiB (get_allocation_size), and it takes all of that unless more than 1
// MiB would remain (should_split): a tensor of 43 MiB costs 44. Tensors that come before anything
// is cached pay it always, others if the cached block that fits best is such a one (get_free_block
// takes the smallest that is large enough and splits none by less than 1 MiB).
func Rounding(size int64) int64 {
	const quantum, large, segment, split = 512, 10 << 20, 2 << 20, 1 << 20
	block := (size + quantum - 1) / quantum * quantum
	if block >= large {
		if whole := (block + segment - 1) / segment * segment; whole-block <= split {
			block = whole
		}
	}
	return block - size
}
