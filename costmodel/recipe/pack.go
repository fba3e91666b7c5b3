package recipe

import (
	"cmp"
	"slices"
)

// interval is a tensor of a routine's scratch and the kernels, first to last, that it lives through.
type interval struct {
	tensor      int
	first, last int
	bytes       int64
	offset      int64
}

// pack gives a pass's temporaries offsets in its scratch without overlap of any alive at once, and
// returns the scratch's size. The problem is NP-hard (dynamic storage allocation, Garey and Johnson
// SR2). Largest first, each in the smallest gap that fits, is near the lower bound on networks
// (Pisarchyk and Lee, arXiv 2001.03288, §5.2). The order in time is a second try, and the smaller
// result wins. Both are deterministic, and quadratic in a routine's few dozen temporaries.
//
// Moments at which nothing is alive cut a routine into independent stretches, so the time for a
// unit is linear in its layers.
func (code *Code) pack(pass string, kernels []Kernel) int64 {
	lives := code.lives(pass, kernels)
	var scratch int64
	for first := 0; first < len(lives); {
		end, last := first+1, lives[first].last
		for ; end < len(lives) && lives[end].first <= last; end++ {
			last = max(last, lives[end].last)
		}
		scratch = max(scratch, code.packStretch(lives[first:end]))
		first = end
	}
	return scratch
}

func (code *Code) packStretch(lives []interval) int64 {
	bySize := slices.Clone(lives)
	slices.SortStableFunc(bySize, func(a, b interval) int { return cmp.Compare(b.bytes, a.bytes) })
	size, inTime := place(bySize), place(lives)
	if inTime < size {
		bySize, size = lives, inTime
	}
	for i := range bySize {
		code.Tensors[bySize[i].tensor].Offset = bySize[i].offset
	}
	return size
}

// lives are the intervals of a pass's temporaries, in the order in which they begin.
func (code *Code) lives(pass string, kernels []Kernel) []interval {
	at := make(map[int]int)
	var lives []interval
	for i := range kernels {
		for j := range kernels[i].Operands {
			index := kernels[i].Operands[j].Tensor
			tensor := &code.Tensors[index]
			if tensor.Class != classTemporary || tensor.Pass != pass {
				continue
			}
			k, ok := at[index]
			if !ok {
				k = len(lives)
				at[index] = k
				lives = append(lives, interval{tensor: index, first: i, bytes: tensor.bytes()})
			}
			lives[k].last = i
		}
	}
	return lives
}

// place gives intervals offsets in order. Each goes to the smallest, then lowest, gap between those
// alive at the same time, or after them all.
func place(lives []interval) int64 {
	var size int64
	var others []*interval
	for i := range lives {
		life := &lives[i]
		others = others[:0]
		for j := range lives[:i] {
			if other := &lives[j]; other.first <= life.last && life.first <= other.last {
				others = append(others, other)
			}
		}
		slices.SortFunc(others, func(a, b *interval) int { return cmp.Compare(a.offset, b.offset) })
		var end int64
		best, gap := int64(-1), int64(0)
		for _, other := range others {
			if free := other.offset - end; free >= life.bytes && (best < 0 || free < gap) {
				best, gap = end, free
			}
			end = max(end, other.offset+other.bytes)
		}
		if best < 0 {
			best = end
		}
		life.offset = best
		size = max(size, best+life.bytes)
	}
	return size
}
