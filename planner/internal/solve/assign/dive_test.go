package assign

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBlend: what prices along few nodes refute does not fit, and they refute
// about as much as prices of each kind's own.
func TestBlend(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(89, 90))
	var refuted [2]int
	for i := range 1500 {
		problem := Problem{Budgets: slices.Repeat([]int64{1}, 2+random.IntN(3))}
		for range 6 + random.IntN(4) {
			problem.Sizes = append(problem.Sizes, 20+random.Int64N(60))
		}
		it := newItems(&problem)
		caps := slices.Repeat([]int64{it.total/int64(len(problem.Budgets)) + random.Int64N(6)}, len(problem.Budgets))
		fit := fitsUnder(it.weight, slices.Clone(caps))
		for way, nodes := range []int{3, len(it.size)} {
			table := newKnapsack(it, caps[0])
			lp := newProgram(it, table, caps[:1], []int{len(caps)}, nodes)
			lp.solve(context.Background(), &pool{}, func() bool { return lp.worth > lp.most })
			if lp.worth > lp.most {
				refuted[way]++
				if fit {
					t.Fatalf("%d: %v fit into %v, and prices %v along %d nodes refute it", i, it.weight, caps, lp.of, nodes)
				}
			}
		}
	}
	if refuted[0] < refuted[1]/2 || refuted[1] < 100 {
		t.Errorf("refuted along three nodes and along all: %v", refuted)
	}
}

// TestDive: what is found holds every item once, within the room.
func TestDive(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(91, 92))
	found := 0
	for i := range 60 {
		problem := Problem{Budgets: slices.Repeat([]int64{1}, 6+random.IntN(6))}
		for range 5 * len(problem.Budgets) {
			problem.Sizes = append(problem.Sizes, 100+random.Int64N(300))
		}
		it := newItems(&problem)
		call := &solver{ctx: context.Background(), it: it}
		room := it.total/int64(len(problem.Budgets)) + 4
		it.seed(&call.known, room)
		sets := call.dive(room, len(problem.Budgets), 4)
		if sets == nil {
			continue
		}
		found++
		count := make([]int, len(it.size))
		for _, set := range sets {
			load := int64(0)
			for _, take := range set {
				count[take.kind] += take.count
				load += int64(take.count) * it.size[take.kind]
			}
			if load > room {
				t.Errorf("%d: a load of %d on %d", i, load, room)
			}
		}
		if len(sets) > len(problem.Budgets) || !slices.Equal(count, it.count) {
			t.Errorf("%d: %d sets hold %v of %v", i, len(sets), count, it.count)
		}
	}
	if found < 40 {
		t.Errorf("found %d of 60", found)
	}
}
