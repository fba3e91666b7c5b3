package assign

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRedivide: the items stay, the value does not rise, and it falls more
// often than not where random places are the start.
func TestRedivide(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(85, 86))
	better := 0
	for i := range 200 {
		problem := Problem{Budgets: slices.Repeat([]int64{3}, 2+random.IntN(4))}
		for range 1 + random.IntN(30) {
			problem.Sizes = append(problem.Sizes, random.Int64N(40))
		}
		call := &solver{ctx: context.Background(), it: newItems(&problem)}
		place := make([]int, len(call.it.weight))
		for pos := range place {
			place[pos] = random.IntN(len(problem.Budgets))
		}
		call.offer(place)
		before := call.high
		call.offer(call.redivide(0, 50))
		if after := call.it.value(call.redivide(0, 50)); len(place) > 0 && after.Cmp(call.high) > 0 {
			t.Errorf("%d: from %v to %v", i, call.high, after)
		}
		if call.high.Cmp(before) < 0 {
			better++
		}
	}
	if better < 150 {
		t.Errorf("%d of 200 random places were bettered", better)
	}
}

// TestNearest: the set's sum is the largest of all sets' up to the room.
func TestNearest(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(87, 88))
	for range 500 {
		var problem Problem
		problem.Budgets = []int64{1}
		for range 1 + random.IntN(9) {
			problem.Sizes = append(problem.Sizes, 1+random.Int64N(30))
		}
		it := newItems(&problem)
		items, room := random.Perm(len(it.weight)), random.Int64N(100)
		most := int64(0)
		for set := range 1 << len(items) {
			sum := int64(0)
			for i, weight := range it.weight {
				sum += weight * int64(set>>i&1)
			}
			if sum <= room {
				most = max(most, sum)
			}
		}
		share, rest, sum := (&division{it: it}).nearest(items, room)
		held := int64(0)
		for _, pos := range share {
			held += it.weight[pos]
		}
		if all := slices.Sorted(slices.Values(append(share, rest...))); sum != most || held != sum || !slices.Equal(all, slices.Sorted(slices.Values(items))) {
			t.Fatalf("%v under %d: %v and %v, a sum of %d; the largest is %d", it.weight, room, share, rest, sum, most)
		}
	}
}
