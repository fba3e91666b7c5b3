package netlist_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestLayOut: the walk of every set of the items costs what the device that has it pays,
// and what another pays that has the other items of the walk.
func TestLayOut(t *testing.T) {
	t.Parallel()
	sets := 0
	for seed := range uint64(300) {
		nets, order := drawn(rand.New(rand.NewPCG(seed, 1)))
		frontier := nets.LayOut(context.Background(), order, all(len(nets.Wires)), anyWidth, netlist.AnySet)
		eachTaken(order, func(takes func(int) bool) {
			in, out, arrives := walked(frontier, takes)
			left := func(item int) bool { return slices.Contains(order, int32(item)) && !takes(item) }
			if want, other := paid(nets.Wires, takes), paid(nets.Wires, left); !arrives || differ(in, want) || differ(out, other) {
				t.Errorf("seed %d: a set costs %v and what is left %v (%v), want %v and %v", seed, in, out, arrives, want, other)
			}
			sets++
		})
	}
	if sets < 3000 {
		t.Errorf("%d sets", sets)
	}
}

// TestLayOutIn: where some of the others are on one of the two sides already, a walk costs
// what the sides pay by then more than before.
func TestLayOutIn(t *testing.T) {
	t.Parallel()
	sided, unused := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		nets, order := drawn(random)
		side := make([]byte, len(nets.Nodes)) // of the others
		for item := range side {
			if !slices.Contains(order, int32(item)) {
				side[item] = []byte{netlist.Neither, netlist.Left, netlist.Taken}[random.IntN(3)]
			}
		}
		around := netlist.Around{Sides: make([]byte, len(nets.Wires)), Outside: make([]bool, len(nets.Wires))}
		used := all(len(nets.Wires))
		var wires []netlist.Wire
		before := [2]float64{} // what is paid already: by Left, by Taken
		for wire, of := range nets.Wires {
			for _, member := range of.Members {
				switch is := side[member]; {
				case is == netlist.Neither:
					around.Outside[wire] = around.Outside[wire] || !slices.Contains(order, member)
				case around.Sides[wire] != netlist.Neither && around.Sides[wire] != is:
					used[wire] = false
				default:
					around.Sides[wire] = is
				}
			}
			if !used[wire] {
				unused++
				continue
			}
			wires = append(wires, of)
			if around.Sides[wire] != netlist.Neither {
				sided++
			}
			if around.Outside[wire] && around.Sides[wire] != netlist.Neither {
				before[around.Sides[wire]-netlist.Left] += of.Cost
			}
		}
		frontier := nets.LayOutIn(context.Background(), order, used, anyWidth, netlist.AnySet, around)
		eachTaken(order, func(takes func(int) bool) {
			in, out, arrives := walked(frontier, takes)
			want := paid(wires, func(item int) bool { return side[item] == netlist.Taken || takes(item) }) - before[1]
			other := paid(wires, func(item int) bool {
				return side[item] == netlist.Left || slices.Contains(order, int32(item)) && !takes(item)
			}) - before[0]
			if !arrives || differ(in, want) || differ(out, other) {
				t.Errorf("seed %d: a set costs %v and what is left %v (%v), want %v and %v", seed, in, out, arrives, want, other)
			}
		})
	}
	if sided < 200 || unused < 20 {
		t.Errorf("%d wires have a side, %d are paid on both", sided, unused)
	}
}

// TestBudget: every set that costs no more than a budget is still there, some of the
// dearer ones are not, and where all are dearer none is.
func TestBudget(t *testing.T) {
	t.Parallel()
	kept, dropped, none := 0, 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		nets, order := drawn(random)
		budget := netlist.Budget{Most: 12 * random.Float64(), Both: random.IntN(2) == 0}
		if random.IntN(2) == 0 {
			for range nets.Nodes {
				budget.Items = append(budget.Items, 4*random.Float64()-0.3*budget.Most/float64(len(order)))
			}
			for item := range budget.Items {
				budget.Items[item] = max(0, budget.Items[item])
			}
		}
		frontier := nets.LayOut(context.Background(), order, all(len(nets.Wires)), anyWidth, budget)
		within := 0
		eachTaken(order, func(takes func(int) bool) {
			cost := paid(nets.Wires, takes)
			for _, item := range order {
				if budget.Items != nil && takes(int(item)) {
					cost += budget.Items[item]
				}
			}
			if budget.Both {
				cost += paid(nets.Wires, func(item int) bool { return slices.Contains(order, int32(item)) && !takes(item) })
			}
			_, _, arrives := walked(frontier, takes)
			switch {
			case cost <= budget.Most-1e-9:
				within++
				kept++
				if !arrives {
					t.Errorf("seed %d: a set that costs %v of %v is not there", seed, cost, budget.Most)
				}
			case !arrives:
				dropped++
			default:
			}
		})
		if within == 0 {
			none++
			if states := frontier.States[len(order)-1]; states > 0 {
				t.Errorf("seed %d: no set is within %v, and %d states are", seed, budget.Most, states)
			}
		}
	}
	if kept < 1000 || dropped < 1000 || none < 5 {
		t.Errorf("%d sets kept, %d dropped, nothing within the budget %d times", kept, dropped, none)
	}
}

// TestLayOutKept: the sets that keep an order, and the sides that some items have, are
// there, at what they cost; and no others are.
func TestLayOutKept(t *testing.T) {
	t.Parallel()
	kept, broken := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 4))
		nets, order := drawn(random)
		rule := randomRule(random, len(nets.Nodes), order)
		frontier := nets.LayOutKept(context.Background(), order, all(len(nets.Wires)), anyWidth, netlist.AnySet, rule)
		eachTaken(order, func(takes func(int) bool) {
			keeps := true
			for _, item := range order {
				side := netlist.Left
				if takes(int(item)) {
					side = netlist.Taken
				}
				keeps = keeps && (rule.Fixed[item] == netlist.Neither || rule.Fixed[item] == side)
				for _, later := range rule.After[item] {
					keeps = keeps && (side == netlist.Taken || !takes(int(later)))
				}
			}
			in, _, arrives := walked(frontier, takes)
			if arrives != keeps || keeps && differ(in, paid(nets.Wires, takes)) {
				t.Errorf("seed %d: a set keeps the order: %v, and is there: %v, for %v", seed, keeps, arrives, in)
			}
			if keeps {
				kept++
			} else {
				broken++
			}
		})
	}
	if kept < 500 || broken < 500 {
		t.Errorf("%d sets keep the order, %d do not", kept, broken)
	}
}

// randomRule is an order of some of the items, with all that follows from it, and sides that
// a few have and that keep it.
func randomRule(random *rand.Rand, items int, order []int32) *netlist.Kept {
	rule := &netlist.Kept{Before: make([][]int32, items), After: make([][]int32, items), Fixed: make([]byte, items)}
	row := slices.Clone(order)
	random.Shuffle(len(row), func(i, j int) { row[i], row[j] = row[j], row[i] })
	follows := make([][]bool, len(row))
	for i := len(row) - 1; i >= 0; i-- {
		follows[i] = make([]bool, len(row))
		for j := i + 1; j < len(row); j++ {
			if random.IntN(4) == 0 {
				follows[i][j] = true
				for k, also := range follows[j] {
					follows[i][k] = follows[i][k] || also
				}
			}
		}
	}
	for i := range row {
		for j := range row {
			if follows[i][j] {
				rule.After[row[i]] = append(rule.After[row[i]], row[j])
				rule.Before[row[j]] = append(rule.Before[row[j]], row[i])
			}
		}
	}
	fix(random, rule, row)
	return rule
}

// fix gives a few of a row's items a side, some at its beginning Taken and some at its end
// Left, and so it does to all that must come before and after them.
func fix(random *rand.Rand, rule *netlist.Kept, row []int32) {
	from, to := random.IntN(len(row)+1), random.IntN(len(row)+1)
	for i, item := range row {
		switch {
		case random.IntN(3) > 0:
		case i < min(from, to):
			for _, other := range append(rule.Before[item], item) {
				rule.Fixed[other] = netlist.Taken
			}
		case i >= max(from, to):
			for _, other := range append(rule.After[item], item) {
				rule.Fixed[other] = netlist.Left
			}
		default:
		}
	}
}
