package netlist_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestLayOutBeside: the sets that are beside an answer cost what they do everywhere, and one
// of them costs both sides no more than the answer, however few states a step may have; of
// wide ones all sets are there.
func TestLayOutBeside(t *testing.T) {
	t.Parallel()
	cheaper, dropped := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		nets, order := drawn(random)
		around := netlist.Around{Sides: make([]byte, len(nets.Wires)), Outside: make([]bool, len(nets.Wires))}
		for wire, of := range nets.Wires {
			around.Outside[wire] = slices.ContainsFunc(of.Members, func(item int32) bool { return !slices.Contains(order, item) })
		}
		answer := make([]bool, len(nets.Nodes))
		for item := range answer {
			answer[item] = random.IntN(2) == 0
		}
		used := all(len(nets.Wires))
		whole := nets.LayOutIn(context.Background(), order, used, anyWidth, netlist.AnySet, around)
		own := 0.0
		for _, most := range []int{1, 2, math.MaxInt} {
			frontier := nets.LayOutBeside(context.Background(), order, used, most, netlist.AnySet, around,
				func(item int32) bool { return answer[item] })
			if slices.Max(frontier.States) > most {
				t.Errorf("seed %d: %v states, at most %d a step", seed, frontier.States, most)
			}
			least := math.Inf(1)
			eachTaken(order, func(takes func(int) bool) {
				in, out, arrives := walked(frontier, takes)
				wantIn, wantOut, _ := walked(whole, takes)
				if !slices.ContainsFunc(order, func(item int32) bool { return answer[item] != takes(int(item)) }) {
					own = wantIn + wantOut
				}
				switch {
				case !arrives:
					dropped++
					if most == math.MaxInt {
						t.Errorf("seed %d: a set is not in the widest corridor", seed)
					}
				case differ(in, wantIn) || differ(out, wantOut):
					t.Errorf("seed %d: a set costs %v and %v, want %v and %v", seed, in, out, wantIn, wantOut)
				default:
					least = min(least, in+out)
				}
			})
			if least > own+1e-9 {
				t.Errorf("seed %d: the least cost beside an answer of %v is %v", seed, own, least)
			}
			if least < own-1e-9 && most == 1 {
				cheaper++
			}
		}
	}
	if cheaper < 60 || dropped < 4000 {
		t.Errorf("%d answers with something cheaper in the narrowest corridor, %d sets dropped", cheaper, dropped)
	}
}

// TestNarrowCorridor: of many items, too, what is beside an answer costs no more than that:
// here some wires have ends on either side, so that no side may have all.
func TestNarrowCorridor(t *testing.T) {
	t.Parallel()
	same, cheaper := 0, 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 8))
		problem := graphtest.NearChain(random, 40, 30, graph.Kind{Count: 2, Capacity: math.Inf(1)})
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		around := netlist.Around{Sides: make([]byte, len(nets.Wires)), Outside: make([]bool, len(nets.Wires))}
		for wire := range nets.Wires {
			around.Sides[wire] = []byte{netlist.Taken, netlist.Neither, netlist.Neither, netlist.Left}[4*wire/len(nets.Wires)]
		}
		cut, order := 5+random.IntN(30), make([]int32, len(nets.Nodes))
		for item := range order {
			order[item] = int32(item)
		}
		own := 0.0
		for wire, of := range nets.Wires {
			taken, left := around.Sides[wire] == netlist.Taken, around.Sides[wire] == netlist.Left
			for _, item := range of.Members {
				taken, left = taken || int(item) < cut, left || int(item) >= cut
			}
			if taken && left {
				own += 2 * of.Cost
			}
		}
		frontier := nets.LayOutBeside(context.Background(), order, all(len(nets.Wires)), 1+random.IntN(3), netlist.AnySet, around,
			func(item int32) bool { return int(item) < cut })
		switch least := cheapest(frontier); {
		case least > own+1e-9:
			t.Errorf("seed %d: the least cost beside an answer of %v is %v", seed, own, least)
		case least < own-1e-9:
			cheaper++
		default:
			same++
		}
	}
	if same < 50 || cheaper < 50 {
		t.Errorf("%d answers with something cheaper beside them, %d without", cheaper, same)
	}
}

// cheapest is what the cheapest walk costs both sides.
func cheapest(frontier *netlist.Frontier) float64 {
	least := []float64{0}
	for step, arcs := range frontier.Arcs {
		next := slices.Repeat([]float64{math.Inf(1)}, frontier.States[step])
		for state, both := range arcs {
			for _, arc := range both {
				if arc.To != netlist.Nowhere {
					next[arc.To] = min(next[arc.To], least[state]+arc.In+arc.Out)
				}
			}
		}
		least = next
	}
	return least[0]
}
