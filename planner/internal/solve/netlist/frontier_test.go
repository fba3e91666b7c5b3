package netlist_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// remain are the wires of a frontier that are not left out, with what is left of them.
func remain(nets *netlist.Netlist, frontier *netlist.Frontier) (wires []netlist.Wire) {
	for wire, of := range nets.Wires {
		if short, is := frontier.Short[wire]; is {
			of.Members = short
		}
		if !slices.Contains(frontier.Left, wire) {
			wires = append(wires, of)
		}
	}
	return wires
}

// TestNewFrontier: a frontier of all items has no more states than it may, and a set costs
// what it pays for what is said to be left of the wires: never more than in truth.
func TestNewFrontier(t *testing.T) {
	t.Parallel()
	whole, short, left := 0, 0, 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 5))
		nets, _ := drawn(random)
		most := netlist.Width{Step: 1 + random.IntN(6), All: 4 + random.IntN(40)}
		if most.All < len(nets.Nodes) {
			continue // not even one state a step
		}
		frontier := nets.NewFrontier(context.Background(), true, most, netlist.AnySet)
		total := 0
		for _, states := range frontier.States {
			total += states
			if states > most.Step {
				t.Errorf("seed %d: a step of %d states, at most %d", seed, states, most.Step)
			}
		}
		if total > most.All {
			t.Errorf("seed %d: %d states, at most %d", seed, total, most.All)
		}
		wires := remain(nets, frontier)
		for wire, members := range frontier.Short {
			short++
			if len(members) < 2 || slices.ContainsFunc(members, func(item int32) bool { return !slices.Contains(nets.Wires[wire].Members, item) }) {
				t.Errorf("seed %d: of a wire of %v is left %v", seed, nets.Wires[wire].Members, members)
			}
		}
		left += len(frontier.Left)
		if len(frontier.Left)+len(frontier.Short) == 0 {
			whole++
		}
		eachTaken(frontier.Order, func(takes func(int) bool) {
			in, _, arrives := walked(frontier, takes)
			if want := paid(wires, takes); !arrives || differ(in, want) || in > paid(nets.Wires, takes)+1e-9 {
				t.Errorf("seed %d: a set costs %v (%v), want %v; in truth %v", seed, in, arrives, want, paid(nets.Wires, takes))
			}
		})
	}
	if whole < 50 || short < 50 || left < 100 {
		t.Errorf("%d frontiers with all wires, %d wires shortened, %d left out", whole, short, left)
	}
}

// TestFewestSteps: a frontier is made narrower no more than it has to be: as wide as it is
// with all wires it leaves none out.
func TestFewestSteps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		nets, order := drawn(rand.New(rand.NewPCG(seed, 6)))
		for _, of := range []func(most netlist.Width) *netlist.Frontier{
			func(most netlist.Width) *netlist.Frontier {
				return nets.NewFrontier(context.Background(), true, most, netlist.AnySet)
			},
			func(most netlist.Width) *netlist.Frontier {
				return nets.NewFrontierOf(context.Background(), order, true, most, netlist.AnySet)
			},
		} {
			wide := of(anyWidth)
			total := 0
			for _, states := range wide.States {
				total += states
			}
			again := of(netlist.Width{Step: slices.Max(wide.States), All: total})
			if lost := len(wide.Left) + len(wide.Short) + len(again.Left) + len(again.Short); lost > 0 {
				t.Errorf("seed %d: %d wires are left out or shortened for nothing", seed, lost)
			}
		}
	}
}

// TestNewFrontierOf: a frontier of some items costs a set what it pays for the wires that
// are not left out, the others being elsewhere; without wires it costs nothing.
func TestNewFrontierOf(t *testing.T) {
	t.Parallel()
	left := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 7))
		nets, order := drawn(random)
		most := netlist.Width{Step: 1 + random.IntN(6), All: len(order) + random.IntN(40)}
		frontier := nets.NewFrontierOf(context.Background(), order, true, most, netlist.AnySet)
		free := nets.NewFrontierOf(context.Background(), order, false, most, netlist.AnySet)
		if !slices.Equal(frontier.Order, order) || slices.Max(frontier.States) > most.Step {
			t.Errorf("seed %d: the order %v, of %v; states %v, at most %d", seed, frontier.Order, order, frontier.States, most.Step)
		}
		left += len(frontier.Left)
		wires := remain(nets, frontier)
		eachTaken(order, func(takes func(int) bool) {
			in, _, arrives := walked(frontier, takes)
			if want := paid(wires, takes); !arrives || differ(in, want) {
				t.Errorf("seed %d: a set costs %v (%v), want %v", seed, in, arrives, want)
			}
			if in, out, arrives := walked(free, takes); !arrives || in != 0 || out != 0 {
				t.Errorf("seed %d: without wires a set costs %v and %v (%v)", seed, in, out, arrives)
			}
		})
	}
	if left < 100 {
		t.Errorf("%d wires are left out", left)
	}
}

// TestWithoutWires: where sends are free every wire is left out, and the items that cost
// the most come first.
func TestWithoutWires(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for seed := range uint64(100) {
		nets, _ := drawn(rand.New(rand.NewPCG(seed, 10)))
		budget := netlist.Budget{Most: math.Inf(1), Items: nets.Time[0]}
		frontier := nets.NewFrontier(context.Background(), false, netlist.Narrow, budget)
		for i, item := range frontier.Order[1:] {
			if before := frontier.Order[i]; budget.Items[before] < budget.Items[item] {
				t.Errorf("seed %d: %v stands before %v", seed, budget.Items[before], budget.Items[item])
			}
		}
		if len(frontier.Left) != len(nets.Wires) || slices.Max(frontier.States) != 1 {
			t.Errorf("seed %d: %d of %d wires are left out; states %v", seed, len(frontier.Left), len(nets.Wires), frontier.States)
		}
		if nets.NewFrontier(ended, true, netlist.Narrow, budget) != nil || nets.NewFrontier(ended, false, netlist.Narrow, budget) != nil ||
			nets.NewFrontierOf(ended, frontier.Order, true, netlist.Narrow, budget) != nil {
			t.Errorf("seed %d: there is a frontier, and the time is over", seed)
		}
	}
}
