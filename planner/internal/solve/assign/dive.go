package assign

import (
	"cmp"
	"context"
	"slices"
)

// dive looks for an assignment under a room, the same on all devices, from the
// linear program over sets: the sets that its answer takes most often are laid
// on devices for good, and the program is solved anew for what is left, until a
// search can finish (diving; Wäscher and Gau, OR Spektrum 18, 1996). It returns
// the sets of all devices, or nil, which says nothing. With more care fewer are
// laid at a time.
func (call *solver) dive(room int64, devices int, care int64) [][]taken {
	it := call.it
	left := slices.Clone(it.count)
	var laid [][]taken
	for len(laid) < devices && call.ctx.Err() == nil {
		rest := it.rest(left)
		if rest.total > room*int64(devices-len(laid)) {
			return nil
		}
		if len(rest.weight) <= diveItems || devices-len(laid) <= diveDevices {
			return call.finish(laid, rest, room, devices-len(laid))
		}
		lp := rest.solved(call.ctx, room, devices-len(laid), call.known.of(rest))
		if lp == nil {
			return nil
		}
		before := len(laid)
		if laid = rest.layMost(lp, left, laid, devices, care); len(laid) == before {
			return nil
		}
	}
	if slices.Max(left) > 0 {
		return nil
	}
	return laid
}

// restTable is what is left of some items, its kinds those of which some are.
type restTable struct {
	itemTable
	kinds []int // of the table that it is left of
}

// layMost lays the sets that a program's answer takes most often: a whole one is
// sure, and of the others a few are laid, for they change what is left.
func (rest *restTable) layMost(lp *program, left []int, laid [][]taken, devices int, care int64) [][]taken {
	few := len(laid) + max(2, (devices-len(laid))/int(care))
	for _, row := range lp.taken() {
		if lp.share[row] < 0.99 && len(laid) >= few {
			break
		}
		for copies := max(1, int(lp.share[row]+0.01)); copies > 0 && len(laid) < devices && rest.lay(left, lp.column[row]); copies-- {
			laid = append(laid, rest.original(lp.column[row]))
		}
	}
	return laid
}

// A dive leaves so little to a search, which may fill so many devices.
const diveItems, diveDevices, diveNodes = 12, 3, 2000

// finish searches for sets of the rest on the devices that are left.
func (call *solver) finish(laid [][]taken, rest *restTable, room int64, devices int) [][]taken {
	find := newSearch(call.ctx, &rest.itemTable, slices.Repeat([]int64{room}, devices), diveNodes)
	if find.run() != yes {
		return nil
	}
	for _, device := range find.chosen {
		laid = append(laid, rest.original(device.items))
	}
	return laid
}

func (it *itemTable) rest(left []int) *restTable {
	rest := &restTable{}
	for kind, count := range left {
		if count > 0 {
			rest.kinds = append(rest.kinds, kind)
			rest.size, rest.count = append(rest.size, it.size[kind]), append(rest.count, count)
			for range count {
				rest.weight = append(rest.weight, it.size[kind])
			}
			rest.total += it.size[kind] * int64(count)
		}
	}
	return rest
}

// solved is the program over the rest's sets, as far as it takes for them to fit
// into the devices; nil where they do not, or where the tables would be large.
func (rest *restTable) solved(ctx context.Context, room int64, devices int, known *pool) *program {
	table := newKnapsack(&rest.itemTable, room)
	if table == nil {
		return nil
	}
	lp := newProgram(&rest.itemTable, table, []int64{room}, []int{devices}, coarse)
	fits := func() bool { return lp.value() <= float64(devices)*(1+1e-7) }
	lp.solve(ctx, known, func() bool { return lp.worth > lp.most || fits() })
	if !fits() {
		return nil
	}
	return lp
}

// value is how many devices the answer so far would fill.
func (lp *program) value() float64 {
	total := 0.0
	for row, cost := range lp.cost {
		total += cost * lp.share[row]
	}
	return total
}

// original is a set in the kinds of the table that this is left of.
func (rest *restTable) original(items []taken) []taken {
	out := make([]taken, len(items))
	for i, take := range items {
		out[i] = taken{rest.kinds[take.kind], take.count}
	}
	return out
}

// lay takes a set off what is left, if all of it is there.
func (rest *restTable) lay(left []int, items []taken) bool {
	for _, take := range items {
		if left[rest.kinds[take.kind]] < take.count {
			return false
		}
	}
	for _, take := range items {
		left[rest.kinds[take.kind]] -= take.count
	}
	return len(items) > 0
}

// of are the sets that can still be taken whole, in the rest's kinds.
func (known *pool) of(rest *restTable) *pool {
	at := make(map[int]int)
	for kind, original := range rest.kinds {
		at[original] = kind
	}
	out := &pool{}
	for _, set := range known.sets {
		items := make([]taken, 0, len(set.items))
		for _, take := range set.items {
			if kind, left := at[take.kind]; left && take.count <= rest.count[kind] {
				items = append(items, taken{kind, take.count})
			}
		}
		if len(items) == len(set.items) {
			out.add(&rest.itemTable, items)
		}
	}
	return out
}

// taken are the rows whose column is a set, the most of it taken first.
func (lp *program) taken() []int {
	var rows []int
	for row, items := range lp.column {
		if items != nil && lp.share[row] > 1e-6 {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(lp.share[b], lp.share[a]) })
	return rows
}
