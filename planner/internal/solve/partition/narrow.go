package partition

import (
	"cmp"
	"slices"
)

// narrow drops the sets of a level that cost most to cut at, where there are
// too many, and the steps that lead to them.
func (g *grower) narrow(now, then *level) {
	if g.width == 0 || len(then.hash) <= g.width {
		return
	}
	g.l.complete = false
	byCut := make([]int, len(then.hash))
	for i := range byCut {
		byCut[i] = i
	}
	slices.SortStableFunc(byCut, func(a, b int) int { return cmp.Compare(then.cut[a], then.cut[b]) })
	keep := byCut[:g.width]
	slices.Sort(keep)
	rename := make([]int32, len(then.hash))
	for i := range rename {
		rename[i] = -1
	}
	kept := &level{words: then.words, base: then.base}
	for n, i := range keep {
		rename[i] = then.base + int32(n)
		kept.bits = append(kept.bits, then.set(i)...)
		kept.hash = append(kept.hash, then.hash[i])
		kept.free = append(kept.free, then.free[i])
		kept.cut = append(kept.cut, then.cut[i])
		g.l.parent[int(then.base)+n] = g.l.parent[int(then.base)+i]
		g.l.via[int(then.base)+n] = g.l.via[int(then.base)+i]
	}
	*then = *kept
	g.l.parent = g.l.parent[:int(kept.base)+len(keep)]
	g.l.via = g.l.via[:int(kept.base)+len(keep)]
	g.dropSteps(now, kept.base, rename)
}

// dropSteps renames the ends of a level's steps and forgets those that are
// gone.
func (g *grower) dropSteps(now *level, base int32, rename []int32) {
	at := g.l.first[now.base]
	out := at
	for i := range now.hash {
		id := int(now.base) + i
		end := g.l.first[id+1]
		for ; at < end; at++ {
			if to := rename[g.l.next[at]-base]; to >= 0 {
				g.l.next[out], g.l.item[out] = to, g.l.item[at]
				out++
			}
		}
		g.l.first[id+1] = out
	}
	g.l.next, g.l.item = g.l.next[:out], g.l.item[:out]
}
