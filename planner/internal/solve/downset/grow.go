package downset

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// level has the down-sets of one size while the lattice grows.
type level struct {
	words  int
	bits   []uint64 // words for each set
	hash   []uint64
	free   [][]int32 // the items that may follow a set
	cut    []float64 // the cost of cutting at a set; only if sets are dropped
	number map[uint64]int32
	base   int32 // the number of the level's first set in the lattice
}

func (sets *level) set(i int) []uint64 { return sets.bits[i*sets.words : (i+1)*sets.words] }

// grower builds a lattice level by level.
type grower struct {
	*order
	sets *lattice
	// width is the most sets of a level; those with the cheapest cuts remain. 0: no limit.
	width int
	key   []uint64 // a set's hash is the XOR of its items' keys
	child []uint64
}

// grow lists every down-set; nil if there are more than limit.
func (ordered *order) grow(ctx context.Context, limit int) (*lattice, error) {
	return ordered.growLevels(ctx, limit, 0)
}

// growSome lists the down-sets with the cheapest cuts, equally many of each size, about limit in
// all; nil if even these are too many.
func (ordered *order) growSome(ctx context.Context, limit int) (*lattice, error) {
	return ordered.growLevels(ctx, math.MaxInt, max(1, limit/(len(ordered.Nodes)+1)))
}

// maxBits limits the memory of a level, in uint64.
const maxBits = 8 << 20

// growLevels returns nil if there are more sets than limit.
func (ordered *order) growLevels(ctx context.Context, limit, width int) (*lattice, error) {
	grow := &grower{order: ordered, width: width, key: make([]uint64, len(ordered.Nodes))}
	grow.sets = &lattice{first: []int32{0}, parent: []int32{-1}, via: []int32{-1}, complete: true}
	random := rand.New(rand.NewPCG(1, 2)) // the same in every run
	for item := range grow.key {
		grow.key[item] = random.Uint64()
	}
	words := (len(ordered.Nodes) + 63) / 64
	grow.child = make([]uint64, words)
	now := &level{words: words, bits: make([]uint64, words), hash: []uint64{0}, free: [][]int32{nil}, cut: []float64{0}}
	for item := range ordered.before {
		if len(ordered.before[item]) == 0 {
			now.free[0] = append(now.free[0], int32(item))
		}
	}
	for range ordered.Nodes {
		then := &level{words: words, base: int32(grow.sets.len()), number: make(map[uint64]int32)}
		for i := range now.hash {
			if i%64 == 0 && ctx.Err() != nil {
				return nil, ctx.Err()
			}
			for _, item := range now.free[i] {
				grow.sets.next = append(grow.sets.next, grow.enter(now, i, item, then))
				grow.sets.item = append(grow.sets.item, item)
			}
			grow.sets.first = append(grow.sets.first, int32(len(grow.sets.next)))
			if grow.sets.len() > limit || len(then.bits) > maxBits {
				return nil, nil //nolint:nilnil // documented
			}
		}
		grow.narrow(now, then)
		now = then
	}
	grow.sets.first = append(grow.sets.first, int32(len(grow.sets.next)))
	return grow.sets, nil
}

func ready(before []int, set []uint64) bool {
	for _, other := range before {
		if set[other/64]>>(other%64)&1 == 0 {
			return false
		}
	}
	return true
}

// enter finds or makes the set with one more item.
func (grow *grower) enter(now *level, i int, item int32, then *level) int32 {
	copy(grow.child, now.set(i))
	grow.child[item/64] |= 1 << (item % 64)
	hash := now.hash[i] ^ grow.key[item]
	for {
		count, known := then.number[hash]
		if !known {
			break
		}
		if slices.Equal(then.set(int(count)), grow.child) {
			return then.base + count
		}
		hash = bits.RotateLeft64(hash, 1) + 1 // another set has this hash: try the next
	}
	number := int32(len(then.hash))
	then.number[hash] = number
	then.bits = append(then.bits, grow.child...)
	then.hash = append(then.hash, now.hash[i]^grow.key[item])
	if grow.width > 0 {
		then.cut = append(then.cut, now.cut[i]+grow.cutBy(now.set(i), int(item)))
	}
	then.free = append(then.free, grow.follow(now.free[i], item))
	grow.sets.parent = append(grow.sets.parent, now.base+int32(i))
	grow.sets.via = append(grow.sets.via, item)
	return then.base + number
}

// follow returns the items that may follow the set grow.child: those that could before item, and
// those that waited for item.
func (grow *grower) follow(free []int32, item int32) []int32 {
	out := make([]int32, 0, len(free)+1)
	for _, waiting := range free {
		if waiting != item {
			out = append(out, waiting)
		}
	}
	for _, other := range grow.after[item] {
		if ready(grow.before[other], grow.child) {
			out = append(out, int32(other))
		}
	}
	return out
}

// narrow drops the sets of a level with the most expensive cuts if there are too many, and the
// steps to them.
func (grow *grower) narrow(now, then *level) {
	if grow.width == 0 || len(then.hash) <= grow.width {
		return
	}
	grow.sets.complete = false
	byCut := make([]int, len(then.hash))
	for i := range byCut {
		byCut[i] = i
	}
	slices.SortStableFunc(byCut, func(a, b int) int { return cmp.Compare(then.cut[a], then.cut[b]) })
	keep := byCut[:grow.width]
	slices.Sort(keep)
	rename := make([]int32, len(then.hash))
	for i := range rename {
		rename[i] = -1
	}
	pruned := &level{words: then.words, base: then.base}
	for count, i := range keep {
		rename[i] = then.base + int32(count)
		pruned.bits = append(pruned.bits, then.set(i)...)
		pruned.hash = append(pruned.hash, then.hash[i])
		pruned.free = append(pruned.free, then.free[i])
		pruned.cut = append(pruned.cut, then.cut[i])
		grow.sets.parent[int(then.base)+count] = grow.sets.parent[int(then.base)+i]
		grow.sets.via[int(then.base)+count] = grow.sets.via[int(then.base)+i]
	}
	*then = *pruned
	grow.sets.parent = grow.sets.parent[:int(pruned.base)+len(keep)]
	grow.sets.via = grow.sets.via[:int(pruned.base)+len(keep)]
	grow.dropSteps(now, pruned.base, rename)
}

// dropSteps renumbers the ends of a level's steps and removes steps to dropped sets.
func (grow *grower) dropSteps(now *level, base int32, rename []int32) {
	at := grow.sets.first[now.base]
	out := at
	for i := range now.hash {
		id := int(now.base) + i
		end := grow.sets.first[id+1]
		for ; at < end; at++ {
			if to := rename[grow.sets.next[at]-base]; to >= 0 {
				grow.sets.next[out], grow.sets.item[out] = to, grow.sets.item[at]
				out++
			}
		}
		grow.sets.first[id+1] = out
	}
	grow.sets.next, grow.sets.item = grow.sets.next[:out], grow.sets.item[:out]
}
