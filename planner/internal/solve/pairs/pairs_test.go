package pairs_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// The places of what a drawn pair does not divide, and of what it does.
const (
	elsewhere = iota
	onTwo
	onOne
	either
)

// drawn is a pair of devices, in whole numbers, with items that may be on either.
type drawn struct {
	*pairs.Pair
	nets   *netlist.Netlist
	at     []int   // of each item
	items  []int32 // that may be on either
	around netlist.Around
	used   []bool
}

func draw(random *rand.Rand) *drawn {
	problem := graphtest.Whole(random)
	for node := range problem.Nodes {
		problem.Nodes[node].Size = float64(random.IntN(3))
	}
	nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
	side := func() pairs.Side {
		kind := random.IntN(len(nets.Time))
		room := math.Inf(1)
		if random.IntN(2) == 0 {
			room = float64(2 + random.IntN(8))
		}
		return pairs.Side{Time: nets.Time[kind], Free: nets.Free[kind], Room: room}
	}
	limit := float64(4 + random.IntN(40))
	pair := &drawn{
		Pair: &pairs.Pair{One: side(), Two: side(), Limit: limit, Both: limit * (1 + random.Float64()), Size: nets.Size},
		nets: nets, used: slices.Repeat([]bool{true}, len(nets.Wires)),
		around: netlist.Around{Sides: make([]byte, len(nets.Wires)), Outside: make([]bool, len(nets.Wires))},
	}
	for item := range nets.Nodes {
		at := []int{elsewhere, onTwo, onOne, either, either, either, either}[random.IntN(7)]
		if pair.at = append(pair.at, at); at == either {
			pair.items = append(pair.items, int32(item))
		}
	}
	random.Shuffle(len(pair.items), func(i, j int) { pair.items[i], pair.items[j] = pair.items[j], pair.items[i] })
	pair.surround()
	return pair
}

// surround works out what the two have, pay and hold whatever becomes of the items.
func (pair *drawn) surround() {
	for item, at := range pair.at {
		switch at {
		case onOne:
			pair.One.Load, pair.One.Bytes = pair.One.Load+pair.One.Time[item], pair.One.Bytes+pair.Size[item]
		case onTwo:
			pair.Two.Load, pair.Two.Bytes = pair.Two.Load+pair.Two.Time[item], pair.Two.Bytes+pair.Size[item]
		default:
		}
	}
	for wire, of := range pair.nets.Wires {
		var has [either + 1]bool
		for _, member := range of.Members {
			has[pair.at[member]] = true
		}
		pair.around.Outside[wire], pair.used[wire] = has[elsewhere], !has[onOne] || !has[onTwo]
		if has[onOne] {
			pair.around.Sides[wire] = netlist.Taken
		} else if has[onTwo] {
			pair.around.Sides[wire] = netlist.Left
		}
		if has[onOne] && (has[onTwo] || has[elsewhere]) && !pair.One.Free {
			pair.One.Load += of.Cost
		}
		if has[onTwo] && (has[onOne] || has[elsewhere]) && !pair.Two.Free {
			pair.Two.Load += of.Cost
		}
	}
}

// of is what a division comes to by definition, and whether it is within limits and rooms;
// first tells which of the items are on the first device.
func (pair *drawn) of(first func(at int) bool) (label pairs.Label, within bool) {
	at := slices.Clone(pair.at)
	for i, item := range pair.items {
		at[item] = onTwo
		if first(i) {
			at[item] = onOne
		}
	}
	on := func(side *pairs.Side, is int) (load, bytes float64) {
		for item := range at {
			if at[item] == is {
				load, bytes = load+side.Time[item], bytes+pair.Size[item]
			}
		}
		for _, wire := range pair.nets.Wires {
			count := 0
			for _, member := range wire.Members {
				if at[member] == is {
					count++
				}
			}
			if 0 < count && count < len(wire.Members) && !side.Free {
				load += wire.Cost
			}
		}
		return load, bytes
	}
	label.One, label.Bytes = on(&pair.One, onOne)
	two, bytes := on(&pair.Two, onTwo)
	label.Two = two
	return label, max(label.One, label.Two) <= pair.Limit && label.One+label.Two <= pair.Both && label.Bytes <= pair.One.Room && bytes <= pair.Two.Room
}

func (pair *drawn) layOut() *netlist.Frontier {
	most := netlist.Width{Step: math.MaxInt, All: math.MaxInt}
	return pair.nets.LayOutIn(context.Background(), pair.items, pair.used, most, pair.Budget(pair.items), pair.around)
}

// walk is the labels of a pair, each of which has to be that of its sides, and within the
// limits.
func (pair *drawn) walk(t *testing.T, divide *pairs.Divider, cells pairs.Cells) []pairs.Label {
	t.Helper()
	labels := slices.Clone(divide.Walk(context.Background(), pair.layOut(), pair.Pair, cells))
	for i, label := range labels {
		sides := divide.Sides(i, len(pair.items))
		if is, within := pair.of(func(at int) bool { return sides[at] }); is != label || !within {
			t.Errorf("the sides %v of a label %v come to %v; within limits and rooms: %v", sides, label, is, within)
		}
	}
	return labels
}

// eight is how many bytes, at most, may be told apart where they bind.
const eight = 8

// exact says that a pair has something to divide, whose bytes may be told apart.
func (pair *drawn) exact() bool {
	bytes := 0.
	for _, item := range pair.items {
		bytes += pair.Size[item]
	}
	return len(pair.items) >= 2 && bytes <= eight
}

// TestWalk: where cells are fine enough, no division that is within the limits and the rooms
// is better than all labels; with few cells labels are still those of their sides.
func TestWalk(t *testing.T) {
	t.Parallel()
	divide := pairs.New()
	divisions, none, tight, lost := 0, 0, 0, 0
	for seed := range uint64(1500) {
		pair := draw(rand.New(rand.NewPCG(seed, 1)))
		if !pair.exact() {
			continue
		}
		labels := pair.walk(t, divide, pairs.Cells{Fewest: 2000, Most: 2000})
		refused := false
		graphtest.EachSet(len(pair.items), func(first func(int) bool) {
			is, within := pair.of(first)
			if !within {
				refused = refused || max(is.One, is.Two) <= pair.Limit && is.One+is.Two <= pair.Both
				return
			}
			divisions++
			if !slices.ContainsFunc(labels, func(label pairs.Label) bool { return label.One <= is.One && label.Two <= is.Two }) {
				t.Errorf("seed %d: %v is possible, and no label is as good: %v", seed, is, labels)
			}
		})
		if len(labels) == 0 {
			none++
		}
		if refused {
			tight++
		}
		if coarse := pair.walk(t, divide, pairs.Cells{Fewest: 2, Most: 2}); len(coarse) < len(labels) {
			lost++
		}
		if t.Failed() {
			return
		}
	}
	if divisions < 3000 || none < 100 || tight < 100 || lost < 50 {
		t.Errorf("%d divisions; %d pairs without one, %d where bytes bind, %d of which two cells lose labels", divisions, none, tight, lost)
	}
}

// TestCells: there are as many as make so many labels with the states of a walk, within
// bounds; more of them tell more apart. A walk whose time is over has no labels.
func TestCells(t *testing.T) {
	t.Parallel()
	divide := pairs.New()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	more := 0
	for seed := range uint64(300) {
		pair := draw(rand.New(rand.NewPCG(seed, 2)))
		if len(pair.items) < 2 {
			continue
		}
		frontier, states := pair.layOut(), 0
		for _, count := range frontier.States {
			states += count
		}
		exactly := func(cells int) []pairs.Label { return pair.walk(t, divide, pairs.Cells{Fewest: cells, Most: cells}) }
		for labels, cells := range map[int]int{0: 2, 5 * states: 5, 1_000_000_000: 400} {
			if states == 0 {
				break
			}
			got := pair.walk(t, divide, pairs.Cells{Fewest: 2, Most: 400, Labels: labels})
			if want := exactly(cells); !slices.Equal(got, want) {
				t.Errorf("seed %d: for %d labels of %d states %v, with %d cells %v", seed, labels, states, got, cells, want)
			}
		}
		if len(exactly(400)) > len(exactly(2)) {
			more++
		}
		if divide.Walk(ended, frontier, pair.Pair, pairs.Cells{Fewest: 2, Most: 2}) != nil {
			t.Errorf("seed %d: labels, and the time is over", seed)
		}
	}
	if more < 20 {
		t.Errorf("%d walks where more cells tell more apart", more)
	}
}
