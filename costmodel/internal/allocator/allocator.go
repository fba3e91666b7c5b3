// Package allocator is how PyTorch's caching allocator cuts the blocks that tensors lie in.
package allocator

// Rounding is the size of a tensor's block less its own, as CUDACachingAllocator.cpp (torch 2.11)
// cuts blocks. Requests are rounded to 512 B (round_size). One of 10 MiB or more gets a segment of
// a multiple of 2 MiB (get_allocation_size). It takes all of that unless more than 1 MiB remains
// (should_split), so a tensor of 43 MiB costs 44. Tensors always pay this before anything is
// cached, others only if their best-fit cached block is such a one (get_free_block).
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
