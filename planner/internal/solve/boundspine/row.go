package boundspine

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// row is the spine from one end: the row of its items, and the blocks between them.
// An item before the first and one behind the last are made up.
type row struct {
	stages     int
	time, size []float64
	room       float64
	wires      []netlist.Wire
	// items are the spine's, −1 for the two made up; block[i] is what lies between
	// items[i−1] and items[i].
	items []int
	block [][]int
	// at is an item's place: 2i+1 for items[i], 2i for what is in block i.
	at []int
	// timeTo and sizeTo are sums of what has a lower place.
	timeTo, sizeTo []float64
	// paid[a][b−a] is what a stage with the spine's items a to b pays for wires that
	// have no member in a block of which it may have a part.
	paid   [][]float64
	splits []split
	picks  []picks // nil: not yet
}

// newRow is of items that come after so many others, earlier, and before so many,
// later.
func newRow(nets *netlist.Netlist, kind int, earlier, later []int) *row {
	count := len(nets.Nodes)
	out := &row{
		stages: min(nets.Count[kind], count), time: nets.Time[kind], size: nets.Size, room: nets.Capacity[kind],
		at: make([]int, count), items: []int{-1},
	}
	if !nets.Free[kind] {
		out.wires = nets.Wires
	}
	for item := range count {
		if earlier[item]+later[item] == count-1 {
			out.items = append(out.items, item)
		}
	}
	slices.SortFunc(out.items[1:], func(a, b int) int { return cmp.Compare(earlier[a], earlier[b]) })
	for i, item := range out.items[1:] {
		out.at[item] = 2*(i+1) + 1
	}
	out.items = append(out.items, -1)
	out.block = make([][]int, len(out.items))
	for item := range count {
		if out.at[item] > 0 {
			continue
		}
		// All that has fewer before it than the item comes before it: of the spine.
		i := len(out.items) - 1
		if found := slices.IndexFunc(out.items[1:i], func(of int) bool { return earlier[of] > earlier[item] }); found >= 0 {
			i = found + 1
		}
		out.at[item] = 2 * i
		out.block[i] = append(out.block[i], item)
	}
	out.sum()
	return out
}

// counted is how many others each item comes after.
func counted(before, after [][]int) []int {
	count, order := make([]int, len(before)), graph.InOrder(before, after)
	cones := graph.Cones(order, before)
	for _, item := range order {
		count[item] = -1 // itself
		for _, members := range cones[item] {
			count[item] += bits.OnesCount64(members)
		}
	}
	return count
}

// sum adds up times and sizes along the row.
func (row *row) sum() {
	row.timeTo, row.sizeTo = make([]float64, 2*len(row.items)+1), make([]float64, 2*len(row.items)+1)
	for item, at := range row.at {
		row.timeTo[at+1] += row.time[item]
		row.sizeTo[at+1] += row.size[item]
	}
	for at := range row.timeTo[1:] {
		row.timeTo[at+1] += row.timeTo[at]
		row.sizeTo[at+1] += row.sizeTo[at]
	}
}

// pay finds what stretches pay that a stage can have within a load.
func (row *row) pay(largest float64) {
	for a := range row.items {
		b, room := a, row.room*(1+graph.Rounding)
		for b+1 < len(row.items) && row.timeTo[2*b+4]-row.timeTo[2*a+1] <= largest &&
			row.sizeTo[2*b+4]-row.sizeTo[2*a+1] <= room {
			b++
		}
		changes := make([]float64, b-a+2) // from one item to the next
		for _, wire := range row.wires {
			row.crossings(wire.Members, a, b, func(from, to int) {
				changes[from-a] += wire.Cost
				changes[to-a] -= wire.Cost
			})
		}
		paid := make([]float64, b-a+1)
		for i, sum := 0, 0.0; i < len(paid); i++ {
			sum += changes[i]
			paid[i] = max(sum, 0)
		}
		row.paid = append(row.paid, paid)
	}
}

// crossings visits the stretches that begin at a and end before some last item, for
// which some of the items are within and some are not, and none is in a block of
// which a stage may have a part: from one last item to before another.
func (row *row) crossings(items []int32, a, last int, visit func(from, to int)) {
	inside, before, high := math.MaxInt, false, 0
	for _, item := range items {
		switch at := row.at[item]; {
		case at == 2*a:
			return
		case at < 2*a:
			before = true
		default:
			inside = min(inside, at)
		}
		high = max(high, row.at[item])
	}
	// From the first stretch that has an item to the last that lacks one.
	from, to := inside/2, last+1
	if !before {
		to = min(to, high/2)
	}
	if inside == math.MaxInt || from >= to {
		return
	}
	visit(from, to)
	seen := make(map[int]bool, len(items))
	for _, item := range items {
		if end := row.at[item]/2 - 1; row.at[item]%2 == 0 && from <= end && end < to && !seen[end] {
			seen[end] = true
			visit(end+1, end) // it is in the block behind
		}
	}
}
