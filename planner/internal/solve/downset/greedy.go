package downset

import (
	"context"
	"math"
	"sort"
)

// greedy cuts one linear extension: every device takes as many items as it can within a limit on
// its load. For each combination of used devices it extends the one that gets furthest. Without
// transfers, a shorter run never costs more. So greedy then finds cuts within the capacities if the
// extension has any. It is a heuristic with transfers. It keeps one number for each combination of
// kinds, and no table of down-sets. So it is the answer if time or memory is short.
type greedy struct {
	*stretch
	ordered *order
	items   []int
	table   *states
	// times, by kind, and sizes are prefix sums over the extension. barred is, by kind and place,
	// the next place that cannot run on the kind.
	times  [][]float64
	sizes  []float64
	barred [][]int
	// far caches furthest, by kind and place; −1: unknown.
	far   [][]int32
	reach []int32 // by state
	from  []int8  // the kind of a state's last device
	steps int
}

func newGreedy(ordered *order, items []int) *greedy {
	cuts := &greedy{stretch: newStretch(ordered.Instance, ordered.Size), ordered: ordered, items: items, table: newStates(ordered.Problem.Kinds, len(items), 0)}
	count := len(items)
	cuts.sizes = make([]float64, count+1)
	for i, item := range items {
		cuts.sizes[i+1] = cuts.sizes[i] + ordered.Size[item]
	}
	for kind := range ordered.Problem.Kinds {
		times, barred := make([]float64, count+1), make([]int, count+1)
		for i, item := range items {
			times[i+1] = times[i]
			if time := ordered.Time[kind][item]; !math.IsInf(time, 1) {
				times[i+1] += time
			}
		}
		barred[count] = count
		for i := count - 1; i >= 0; i-- {
			if barred[i] = barred[i+1]; math.IsInf(ordered.Time[kind][items[i]], 1) {
				barred[i] = i
			}
		}
		cuts.times, cuts.barred, cuts.far = append(cuts.times, times), append(cuts.barred, barred), append(cuts.far, make([]int32, count+1))
	}
	cuts.reach, cuts.from = make([]int32, cuts.table.count), make([]int8, cuts.table.count)
	return cuts
}

// cut finds cuts with loads within a limit. It ignores transfers if transfers is false. It returns
// nil if it finds none or the context ends.
func (cuts *greedy) cut(ctx context.Context, limit float64, transfers bool) []int {
	for kind := range cuts.far {
		for i := range cuts.far[kind] {
			cuts.far[kind][i] = -1
		}
	}
	for at := range cuts.table.count {
		if at%1024 == 0 && ctx.Err() != nil {
			return nil
		}
		cuts.reach[at] = 0
		for kind, stride := range cuts.table.stride {
			if cuts.table.used[at][kind] == 0 {
				continue
			}
			if to := cuts.furthest(ctx, cuts.reach[at-stride], kind, limit, transfers); to >= cuts.reach[at] {
				cuts.reach[at], cuts.from[at] = to, int8(kind)
			}
		}
		if int(cuts.reach[at]) == len(cuts.items) {
			return cuts.places(at)
		}
	}
	return nil
}

// furthest returns the end of the longest run from a place that fits on a device of a kind.
func (cuts *greedy) furthest(ctx context.Context, at int32, kind int, limit float64, transfers bool) int32 {
	if to := cuts.far[kind][at]; to >= 0 {
		return to
	}
	i, end := int(at), cuts.barred[kind][at]
	count := sort.Search(end-i, func(number int) bool {
		to := i + number + 1
		return cuts.times[kind][to]-cuts.times[kind][i] > limit || cuts.sizes[to]-cuts.sizes[i] > cuts.capacity[kind]
	})
	to := i + count
	if transfers {
		to = cuts.scan(ctx, i, to, kind, limit)
	}
	cuts.far[kind][at] = int32(to)
	return int32(to)
}

// scan returns the last place up to end at which a run from i, with its transfers, is within the
// limit. It adds item by item, as prefix sums round.
func (cuts *greedy) scan(ctx context.Context, i, end, kind int, limit float64) int {
	var used usage
	to, at := i, i
	for ; at < end; at++ {
		cuts.steps++
		if cuts.steps%1024 == 0 && ctx.Err() != nil {
			break
		}
		item := cuts.items[at]
		used.time[kind] += cuts.time[item*len(cuts.kinds)+kind]
		used.size += cuts.size[item]
		cuts.push(int32(item), &used)
		if load, _ := cuts.load(&used, kind); load <= limit && used.size <= cuts.capacity[kind] {
			to = at + 1
		}
	}
	for ; at > i; at-- {
		cuts.pop(int32(cuts.items[at-1]))
	}
	return to
}

// places follows a state's devices back.
func (cuts *greedy) places(at int) []int {
	device := make([]int32, len(cuts.items))
	for end := int(cuts.reach[at]); at > 0; {
		kind := int(cuts.from[at])
		at -= cuts.table.stride[kind]
		d := cuts.table.used[at][kind]
		for i := range kind {
			d += cuts.ordered.Problem.Kinds[i].Count
		}
		for ; end > int(cuts.reach[at]); end-- {
			device[cuts.items[end-1]] = int32(d)
		}
	}
	return cuts.ordered.Places(device)
}
