package boundspine

import (
	"cmp"
	"math/bits"
	"slices"

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

func newRow(nets *netlist.Netlist, kind int, before, after [][]int) *row {
	count := len(nets.Nodes)
	out := &row{
		stages: min(nets.Count[kind], count), time: nets.Time[kind], size: nets.Size, room: nets.Capacity[kind],
		at: make([]int, count), items: []int{-1},
	}
	if !nets.Free[kind] {
		out.wires = nets.Wires
	}
	earlier, later := counted(before, after), counted(after, before)
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
		i := 1 + len(out.items[1:len(out.items)-1])
		for j, of := range out.items[1 : len(out.items)-1] {
			if earlier[of] > earlier[item] {
				i = j + 1
				break
			}
		}
		out.at[item] = 2 * i
		out.block[i] = append(out.block[i], item)
	}
	out.sum()
	return out
}

// counted is how many others each item comes after.
func counted(before, after [][]int) []int {
	count := make([]int, len(before))
	waits := make([]int, len(before))
	sets := make([][]uint64, len(before))
	var order []int
	for item := range before {
		sets[item] = make([]uint64, (len(before)+63)/64)
		if waits[item] = len(before[item]); waits[item] == 0 {
			order = append(order, item)
		}
	}
	for i := 0; i < len(order); i++ {
		item := order[i]
		for _, members := range sets[item] {
			count[item] += bits.OnesCount64(members)
		}
		sets[item][item/64] |= 1 << (item % 64)
		for _, next := range after[item] {
			for word, members := range sets[item] {
				sets[next][word] |= members
			}
			if waits[next]--; waits[next] == 0 {
				order = append(order, next)
			}
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

// pay finds what stretches pay.
func (row *row) pay() {
	for a := range row.items {
		paid := make([]float64, len(row.items)-a)
		for _, wire := range row.wires {
			low, high := row.ends(wire.Members)
			for b := a; b < len(row.items) && high > 2*a; b++ {
				if row.crosses(wire.Members, a, b, low, high) {
					paid[b-a] += wire.Cost
				}
			}
		}
		row.paid = append(row.paid, paid)
	}
}

// ends are the first and the last place of some items.
func (row *row) ends(items []int32) (low, high int) {
	low = len(row.timeTo)
	for _, item := range items {
		low, high = min(low, row.at[item]), max(high, row.at[item])
	}
	return low, high
}

// crosses: some of the items are in the stretch from a to b and some are not, and
// none is in a block that a stage with it may have a part of.
func (row *row) crosses(items []int32, a, b, low, high int) bool {
	if low > 2*b+1 || low > 2*a && high < 2*b+2 {
		return false
	}
	some := false
	for _, item := range items {
		switch at := row.at[item]; {
		case at == 2*a || at == 2*b+2:
			return false
		case at > 2*a && at < 2*b+2:
			some = true
		}
	}
	return some
}
