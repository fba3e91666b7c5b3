package estimate

import "github.com/devmap-dev/devmap/modelgraph"

// padding is what PyTorch's allocator adds to a layer's parameters.
func (e *estimator) padding(l *modelgraph.Layer) int64 {
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		return 0
	}
	_, n := e.adapterParams(l)
	for i := range l.Params {
		t := &l.Params[i]
		if t.Tied() {
			continue
		}
		if parts := e.quantised(t); parts != nil {
			for _, size := range parts {
				n += rounding(size)
			}
			continue
		}
		n += rounding(e.stored(t))
	}
	return n
}

// rounding is the size of the block that a tensor takes less its own, as
// CUDACachingAllocator.cpp (torch 2.11) cuts them: requests are rounded to
// 512 B (round_size); one of 10 MiB or more gets a segment of a multiple of
// 2 MiB (get_allocation_size), of which it takes all unless more than 1 MiB
// would remain (should_split): a weight of 43 MiB costs 44. Parameters, which
// come before anything is cached, pay it always (torch-memory.md §2.14).
func rounding(size int64) int64 {
	const quantum, large, segment, split = 512, 10 << 20, 2 << 20, 1 << 20
	block := (size + quantum - 1) / quantum * quantum
	if block >= large {
		if whole := (block + segment - 1) / segment * segment; whole-block <= split {
			block = whole
		}
	}
	return block - size
}
