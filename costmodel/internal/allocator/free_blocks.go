package allocator

import (
	"cmp"
	"slices"
)

// freeBlocks are the free blocks of a pool by size, then by address (BlockComparatorSize).
type freeBlocks struct{ blocks []*Block }

func order(block, other *Block) int {
	return cmp.Or(cmp.Compare(block.Size, other.Size), cmp.Compare(block.address, other.address))
}

func (pool *freeBlocks) add(block *Block) {
	at, _ := slices.BinarySearchFunc(pool.blocks, block, order)
	pool.blocks = slices.Insert(pool.blocks, at, block)
}

func (pool *freeBlocks) remove(block *Block) {
	if at, ok := slices.BinarySearchFunc(pool.blocks, block, order); ok {
		pool.blocks = slices.Delete(pool.blocks, at, at+1)
	}
}

// take removes the smallest block that fits, the lowest of equals; nil if none (get_free_block).
func (pool *freeBlocks) take(size int64) *Block {
	at, _ := slices.BinarySearchFunc(pool.blocks, size, func(block *Block, size int64) int { return cmp.Compare(block.Size, size) })
	if at == len(pool.blocks) {
		return nil
	}
	block := pool.blocks[at]
	pool.blocks = slices.Delete(pool.blocks, at, at+1)
	return block
}
