package downset

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// level holds the down-sets of one size as the lattice grows.
type level struct {
	words  int
	bits   []uint64 // words for each set
	hash   []uint64
	free   [][]int32 // the items that may follow a set
	cut    []float64 // what crosses the set's edge; only where sets are dropped
	number map[uint64]int32
	base   int32 // the number of its first set in the lattice
}

func (s *level) set(i int) []uint64 { return s.bits[i*s.words : (i+1)*s.words] }

// grower builds a lattice level by level.
type grower struct {
	*order
	l *lattice
	// width bounds a level; the sets with the cheapest cuts stay. 0: no bound.
	width int
	key   []uint64 // a set's hash is the XOR of its items' keys
	child []uint64
}

// grow lists every down-set; nil where there are more than limit.
func (o *order) grow(ctx context.Context, limit int) (*lattice, error) {
	return o.growLevels(ctx, limit, 0)
}

// growSome lists those with the cheapest cuts, as many of each size, about
// limit in all; nil where even these are too many.
func (o *order) growSome(ctx context.Context, limit int) (*lattice, error) {
	return o.growLevels(ctx, math.MaxInt, max(1, limit/(len(o.Nodes)+1)))
}

// maxBits bounds the memory of a level, in words.
const maxBits = 8 << 20

// growLevels returns nil where there are more sets than limit.
func (o *order) growLevels(ctx context.Context, limit, width int) (*lattice, error) {
	g := &grower{order: o, width: width, key: make([]uint64, len(o.Nodes))}
	g.l = &lattice{first: []int32{0}, parent: []int32{-1}, via: []int32{-1}, complete: true}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for v := range g.key {
		g.key[v] = random.Uint64()
	}
	words := (len(o.Nodes) + 63) / 64
	g.child = make([]uint64, words)
	now := &level{words: words, bits: make([]uint64, words), hash: []uint64{0}, free: [][]int32{nil}, cut: []float64{0}}
	for v := range o.before {
		if len(o.before[v]) == 0 {
			now.free[0] = append(now.free[0], int32(v))
		}
	}
	for range o.Nodes {
		then := &level{words: words, base: int32(g.l.len()), number: make(map[uint64]int32)}
		for i := range now.hash {
			if i%64 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			for _, v := range now.free[i] {
				g.l.next = append(g.l.next, g.enter(now, i, v, then))
				g.l.item = append(g.l.item, v)
			}
			g.l.first = append(g.l.first, int32(len(g.l.next)))
			if g.l.len() > limit || len(then.bits) > maxBits {
				return nil, nil //nolint:nilnil // documented
			}
		}
		g.narrow(now, then)
		now = then
	}
	g.l.first = append(g.l.first, int32(len(g.l.next)))
	return g.l, nil
}

func ready(before []int, set []uint64) bool {
	for _, u := range before {
		if set[u/64]>>(u%64)&1 == 0 {
			return false
		}
	}
	return true
}

// enter finds or makes the set with one item more.
func (g *grower) enter(now *level, i int, v int32, then *level) int32 {
	copy(g.child, now.set(i))
	g.child[v/64] |= 1 << (v % 64)
	h := now.hash[i] ^ g.key[v]
	for {
		n, known := then.number[h]
		if !known {
			break
		}
		if slices.Equal(then.set(int(n)), g.child) {
			return then.base + n
		}
		h = bits.RotateLeft64(h, 1) + 1 // another set's: probe on
	}
	n := int32(len(then.hash))
	then.number[h] = n
	then.bits = append(then.bits, g.child...)
	then.hash = append(then.hash, now.hash[i]^g.key[v])
	if g.width > 0 {
		then.cut = append(then.cut, now.cut[i]+g.cutBy(now.set(i), int(v)))
	}
	then.free = append(then.free, g.follow(now.free[i], v))
	g.l.parent = append(g.l.parent, now.base+int32(i))
	g.l.via = append(g.l.via, v)
	return then.base + n
}

// follow are the items that may follow the set g.child: those that could
// before v came, and those that waited for v.
func (g *grower) follow(free []int32, v int32) []int32 {
	out := make([]int32, 0, len(free)+1)
	for _, u := range free {
		if u != v {
			out = append(out, u)
		}
	}
	for _, u := range g.after[v] {
		if ready(g.before[u], g.child) {
			out = append(out, int32(u))
		}
	}
	return out
}

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
