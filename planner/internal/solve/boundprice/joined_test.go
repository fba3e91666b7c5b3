package boundprice

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestJoinedLabels: where a state has one label or two, for all that leads there, the walk
// still comes to an end that is worth as much as the dearest set, and at no less load than
// the least that is said to be worth a rent.
func TestJoinedLabels(t *testing.T) {
	t.Parallel()
	walks, sized, lower := 0, 0, 0
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed+26_000, 23))
		problem := graphtest.Whole(random)
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		limit := float64(1 + random.IntN(30))
		bound := New(context.Background(), nets, math.Inf(1))
		prices := make([]float64, len(nets.Nodes))
		for item := range prices {
			prices[item] = float64(random.IntN(9) - 2)
		}
		at := random.IntN(len(bound.walkers))
		walk, kind := bound.walkers[at], bound.kinds[at]
		truth, load := 0.0, 0.0 // of the dearest set of the least load
		graphtest.EachSet(len(nets.Nodes), func(has func(int) bool) {
			worth, size := 0.0, 0.0
			for item := range prices {
				if has(item) {
					worth, size = worth+prices[item], size+nets.Size[item]
				}
			}
			here := graphtest.LoadOf(nets, kind, has)
			if size <= nets.Capacity[kind] && here <= limit && (worth > truth || worth == truth && here < load) {
				truth, load = worth, here
			}
		})
		if truth == 0 {
			continue
		}
		walk.cells, walk.bare = 1+random.IntN(4), true
		walk.relax(walk, prices, limit)
		sets, done := walk.labelled(context.Background(), prices, limit, truth-1e-6, math.MaxInt)
		if !done || len(sets) == 0 || sets[0].worth < truth-1e-9 {
			t.Fatalf("seed %d: a set is worth %v, the walk's end %+v (%v)", seed, truth, sets, done)
		}
		if lowest := walk.lowest(truth - 1e-6); lowest > load+1e-9 {
			t.Fatalf("seed %d: a set of load %v is worth %v, and said to be none below %v", seed, load, truth, lowest)
		} else if lowest < load-1e-3 {
			lower++
		}
		walks++
		if !math.IsInf(walk.room, 1) {
			sized++
		}
	}
	if walks < 2000 || sized < 800 || lower < 50 || lower > walks/2 {
		t.Errorf("%d walks, %d with a capacity, %d that know of a lower load only", walks, sized, lower)
	}
}

// TestStands: a label that another beats in size and worth is told which, by its place.
func TestStands(t *testing.T) {
	walk := &walker{next: []label{{}, {}, {}}} // of other states
	for at, one := range []label{{size: 4, worth: 5}, {size: 2, worth: 3}, {size: 3, worth: 4}, {size: 1, worth: 1}} {
		if _, stands := walk.stands(one.size, one.worth); !stands {
			t.Errorf("%d does not stand", at)
		}
		walk.next = append(walk.next, one)
	}
	for size, by := range map[float64]int{1.5: 6, 2: 4, 3.5: 5, 9: 3} {
		if at, stands := walk.stands(size, walk.next[by].worth); stands || at != by {
			t.Errorf("size %v: %d (%v), want %d", size, at, stands, by)
		}
	}
}
