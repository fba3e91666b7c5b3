package stagesearch

import "context"

// near is a down-set near a boundary: another one, with one item more or less.
// They are a tree, the boundary's own set first; 0 is none of them.
type near struct {
	item, parent, child, next int32
}

// grower finds the sets near one boundary.
type grower struct {
	*corridor
	k  int32 // the boundary is before this stage
	in []bool
	// lacks and leads count the neighbours that bar an item's way over the
	// boundary: what it comes after that is not in, what comes after it that is.
	lacks, leads []int32
	holds        []int32 // of each wire, in the set
	free         []int32 // the items that can go over the boundary at first
	spread       float64 // of what they change the cut by
	chance       float64
	seen         map[uint64]bool
	sets, tried  []grown
}

// grown is a set that may be kept: how much more is cut than at the boundary, and
// how it ranks.
type grown struct {
	near
	hash      uint64
	cut, rank float64
}

// The sets of a corridor differ in at most 6, 12 or 24 items: many that differ in
// few find what packs tightly, few that differ in many what is cheap to cut at.
// Chance adds to what a set ranks by up to so many times the usual change of a cut,
// in some corridors less.
const (
	shallow, depths = 6, 3
	chance          = 4
	// tries are looked at for each set that may be kept, where there are so many.
	tries = 32
)

// grow finds sets near each boundary, about width that differ in two items and
// fewer that differ in more: of all these those that are cheap to cut at, or by
// chance.
func (walk *corridor) grow(ctx context.Context, width int) {
	walk.sets[0], walk.sets[walk.devices] = []near{{}}, []near{{}}
	grow := &grower{
		corridor: walk, in: make([]bool, walk.items),
		lacks: make([]int32, walk.items), leads: make([]int32, walk.items), holds: make([]int32, len(walk.cost)),
		chance: chance * walk.fraction(),
	}
	deepest := shallow << walk.below(depths)
	for k := 1; k < walk.devices; k++ {
		grow.start(int32(k), 4*width)
		first := 0
		for level := 0; level < deepest && ctx.Err() == nil; level++ {
			end := len(grow.sets)
			grow.level(first, end, tries*width)
			grow.keep(max(width>>max(0, level-1), width/8))
			first = end
		}
		if walk.other != nil && ctx.Err() == nil {
			grow.toward(walk.other)
		}
		walk.sets[k] = make([]near, len(grow.sets))
		for i := range grow.sets {
			walk.sets[k][i] = grow.sets[i].near
		}
	}
}

// start is the boundary's own set. Of the items that can go over it, so many are
// looked at.
func (grow *grower) start(k int32, most int) {
	clear(grow.lacks)
	clear(grow.leads)
	clear(grow.holds)
	grow.free, grow.spread = grow.free[:0], 0
	grow.k = k
	grow.sets, grow.seen = append(grow.sets[:0], grown{}), map[uint64]bool{0: true}
	for item, stage := range grow.stage {
		grow.in[item] = stage < k
	}
	for item := range int32(grow.items) {
		for _, other := range grow.before.of(item) {
			if !grow.in[other] {
				grow.lacks[item]++
			}
			if grow.in[item] {
				grow.leads[other]++
			}
		}
		if grow.in[item] {
			for _, wire := range grow.wires.of(item) {
				grow.holds[wire]++
			}
		}
	}
	for item := range int32(grow.items) {
		if grow.may(item) {
			grow.free = append(grow.free, item)
		}
	}
	for i := range min(most, len(grow.free)) {
		other := i + grow.below(len(grow.free)-i)
		grow.free[i], grow.free[other] = grow.free[other], grow.free[i]
	}
	grow.free = grow.free[:min(most, len(grow.free))]
	for _, item := range grow.free {
		more := grow.more(item)
		grow.spread += max(more, -more) / float64(len(grow.free))
	}
}

// below is a random number from 0 to count − 1.
func (walk *corridor) below(count int) int {
	return int(walk.random.Uint64() >> 32 * uint64(count) >> 32)
}

// fraction is a random number from 0 to 1.
func (walk *corridor) fraction() float64 { return float64(walk.random.Uint64()>>11) * 0x1p-53 }

// may says whether an item can go over the boundary.
func (grow *grower) may(item int32) bool {
	return grow.in[item] && grow.leads[item] == 0 || !grow.in[item] && grow.lacks[item] == 0
}

// more is what is cut more when an item goes over the boundary.
func (grow *grower) more(item int32) float64 {
	sum := 0.0
	for _, wire := range grow.wires.of(item) {
		held, members := grow.holds[wire], grow.members[wire]
		then := held + 1
		if grow.in[item] {
			then = held - 1
		}
		if held == 0 || held == members {
			sum += grow.cost[wire]
		}
		if then == 0 || then == members {
			sum -= grow.cost[wire]
		}
	}
	return sum
}

// over takes the items of a set over the boundary, or back.
func (grow *grower) over(set int32) {
	for at := set; at > 0; at = grow.sets[at].parent {
		grow.cross(grow.sets[at].item)
	}
}

// cross takes an item over the boundary, or back.
func (grow *grower) cross(item int32) {
	sign := int32(1)
	if grow.in[item] {
		sign = -1
	}
	grow.in[item] = !grow.in[item]
	for _, wire := range grow.wires.of(item) {
		grow.holds[wire] += sign
	}
	for _, other := range grow.after.of(item) {
		grow.lacks[other] -= sign
	}
	for _, other := range grow.before.of(item) {
		grow.leads[other] += sign
	}
}

// level tries the sets that differ by one item from those of a level, about so many
// where there are more.
func (grow *grower) level(first, end, most int) {
	stride := 1 + (end-first)*len(grow.free)/most
	for i := int32(first); i < int32(end); i++ {
		grow.over(i)
		for at := grow.below(stride); at < len(grow.free); at += stride {
			grow.try(i, grow.free[at])
		}
		for at := i; at > 0; at = grow.sets[at].parent {
			for _, other := range grow.after.of(grow.sets[at].item) {
				grow.try(i, other)
			}
			for _, other := range grow.before.of(grow.sets[at].item) {
				grow.try(i, other)
			}
		}
		grow.over(i)
	}
}

// try adds a set to those that may be kept.
func (grow *grower) try(parent, item int32) {
	grow.work++
	from := &grow.sets[parent]
	hash := from.hash ^ grow.key[item]
	if !grow.may(item) || grow.seen[hash] {
		return
	}
	for at := parent; at > 0; at = grow.sets[at].parent {
		if grow.sets[at].item == item {
			return // back again
		}
	}
	grow.seen[hash] = true
	cut := from.cut + grow.more(item)
	rank := cut + grow.chance*grow.spread*grow.fraction()
	grow.tried = append(grow.tried, grown{near{item: item, parent: parent}, hash, cut, rank})
}

// keep keeps so many of the sets that were tried.
func (grow *grower) keep(most int) {
	most = min(most, len(grow.tried))
	first(grow.tried, most)
	for _, one := range grow.tried[:most] {
		grow.append(one)
	}
	grow.tried = grow.tried[:0]
}

// first puts so many of the lowest ranks in front, in any order (Hoare's selection,
// Communications of the ACM 4, 1961).
func first(sets []grown, most int) {
	for low, high := 0, len(sets)-1; low < high; {
		pivot, i, j := sets[(low+high)/2].rank, low, high
		for i <= j {
			for sets[i].rank < pivot {
				i++
			}
			for sets[j].rank > pivot {
				j--
			}
			if i <= j {
				sets[i], sets[j] = sets[j], sets[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case most <= j+1:
			high = j
		case most > i:
			low = i
		default:
			return
		}
	}
}

// append adds a set to the tree and returns its number.
func (grow *grower) append(one grown) int32 {
	number, from := int32(len(grow.sets)), &grow.sets[one.parent].near
	one.next, from.child = from.child, number
	grow.sets = append(grow.sets, one)
	return number
}
