package allocator

// The sizes by which CUDACachingAllocator.cpp (torch 2.11; the constants are in
// c10/core/AllocatorConfig.h and c10/cuda/CUDACachingAllocator.h) cuts memory.
const (
	quantum     = 512      // kMinBlockSize: sizes are multiples of it (round_size)
	smallest    = 1 << 20  // kSmallSize: requests up to it come from the small pool
	smallBuffer = 2 << 20  // kSmallBuffer: its segments
	largeBuffer = 20 << 20 // kLargeBuffer: segments of requests below ownSegment
	ownSegment  = 10 << 20 // kMinLargeAlloc: requests from it on have segments of their own
	roundLarge  = 2 << 20  // kRoundLarge: of multiples of this
)

// Cache is PyTorch's caching allocator of one device, block by block: it computes the bytes
// reserved for a sequence of tensors. Every stream has a pool of small blocks and a pool of large
// ones. A request takes the smallest fitting free block of its pool, or a segment from the driver.
// A large enough rest stays a free block. Freed blocks join their free neighbours. Only
// [Cache.Empty] returns memory to the driver.
//
// Blocks fill a segment without overlap; reserved bytes are the segments'. Among n free blocks of
// its pool a request takes O(log n) to search and moves O(n) words to insert.
type Cache struct {
	pools map[poolKey]*freeBlocks
	// Reserved are the bytes of all segments, Allocated of blocks in use; peaks since
	// [Cache.ResetPeaks].
	Reserved, Allocated         int64
	PeakReserved, PeakAllocated int64
	// Rests are the blocks' bytes above their tensors', PeakRests the same at the allocated peak.
	Rests, PeakRests int64

	// Up: new segments are above earlier ones. An H200's driver mostly places them below
	// (testdata).
	Up  bool
	end int64 // address of the last segment, or after it
	// at gives a segment its address, if a test has it from a real device.
	at func(size int64) int64
}

// poolKey is a pool: blocks of one stream, small or large ones.
type poolKey struct {
	stream int
	small  bool
}

// Block is a part of a segment. Its neighbours in it are linked.
type Block struct {
	Size    int64
	rest    int64 // above the tensor
	address int64
	pool    poolKey
	free    bool
	before  *Block
	behind  *Block
}

// NewCache is the allocator of a process that has asked for nothing yet.
func NewCache() *Cache { return &Cache{pools: make(map[poolKey]*freeBlocks)} }

// Alloc is a block of at least size bytes for a tensor that is made on a stream (malloc).
func (cache *Cache) Alloc(stream int, size int64) *Block {
	size = max(quantum, (size+quantum-1)/quantum*quantum)
	key := poolKey{stream, size <= smallest}
	pool := cache.pools[key]
	if pool == nil {
		pool = new(freeBlocks)
		cache.pools[key] = pool
	}
	block := pool.take(size)
	if block == nil {
		block = cache.segment(key, size)
	}
	if rest := block.Size - size; key.small && rest >= quantum || !key.small && rest > smallest { // should_split
		left := &Block{Size: rest, address: block.address + size, pool: key, free: true, before: block, behind: block.behind}
		if left.behind != nil {
			left.behind.before = left
		}
		block.behind, block.Size = left, size
		pool.add(left)
	}
	block.free, block.rest = false, block.Size-size
	cache.Allocated += block.Size
	cache.Rests += block.rest
	if cache.Allocated > cache.PeakAllocated {
		cache.PeakAllocated, cache.PeakRests = cache.Allocated, cache.Rests
	}
	return block
}

// segment is a new one, as one block (get_allocation_size, alloc_block).
func (cache *Cache) segment(key poolKey, size int64) *Block {
	bytes := int64(largeBuffer)
	switch {
	case key.small:
		bytes = smallBuffer
	case size >= ownSegment:
		bytes = (size + roundLarge - 1) / roundLarge * roundLarge
	}
	address := cache.end
	if cache.Up {
		cache.end += bytes
	} else {
		cache.end -= bytes
		address = cache.end
	}
	if cache.at != nil {
		address = cache.at(bytes)
	}
	cache.Reserved += bytes
	cache.PeakReserved = max(cache.PeakReserved, cache.Reserved)
	return &Block{Size: bytes, address: address, pool: key}
}

// Free gives a block back to its pool, joined with its free neighbours (free_block, try_merge_blocks).
func (cache *Cache) Free(block *Block) {
	cache.Allocated -= block.Size
	cache.Rests -= block.rest
	pool := cache.pools[block.pool]
	block.free = true
	if before := block.before; before != nil && before.free {
		pool.remove(before)
		before.join(block)
		block = before
	}
	if behind := block.behind; behind != nil && behind.free {
		pool.remove(behind)
		block.join(behind)
	}
	pool.add(block)
}

// join adds the next block to this one.
func (block *Block) join(behind *Block) {
	block.Size += behind.Size
	block.behind = behind.behind
	if block.behind != nil {
		block.behind.before = block
	}
}

// Empty gives every segment without a block in use back to the driver
// (torch.cuda.empty_cache, release_cached_blocks).
func (cache *Cache) Empty() {
	for _, pool := range cache.pools {
		retained := pool.blocks[:0]
		for _, block := range pool.blocks {
			if block.before == nil && block.behind == nil {
				cache.Reserved -= block.Size
			} else {
				retained = append(retained, block)
			}
		}
		clear(pool.blocks[len(retained):])
		pool.blocks = retained
	}
}

// ResetPeaks sets the peaks to the current bytes (reset_peak_memory_stats).
func (cache *Cache) ResetPeaks() {
	cache.PeakReserved, cache.PeakAllocated, cache.PeakRests = cache.Reserved, cache.Allocated, cache.Rests
}
