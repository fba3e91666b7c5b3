package assign

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// fitsUnder tries every assignment of the items to rooms.
func fitsUnder(weight, caps []int64) bool {
	if slices.ContainsFunc(caps, func(c int64) bool { return c < 0 }) {
		return false
	}
	if len(weight) == 0 {
		return true
	}
	for d := range caps {
		if weight[0] <= caps[d] {
			caps[d] -= weight[0]
			ok := fitsUnder(weight[1:], caps)
			caps[d] += weight[0]
			if ok {
				return true
			}
		}
	}
	return false
}

func drawAssign(rng *rand.Rand) *itemTable {
	p := &Problem{Budgets: make([]int64, 1+rng.IntN(4))}
	for range rng.IntN(7) {
		p.Sizes = append(p.Sizes, 1+rng.Int64N(30))
	}
	same := 1 + rng.Int64N(9)
	for d := range p.Budgets {
		p.Budgets[d] = same
	}
	if rng.IntN(2) == 0 {
		p.Fixed = make([]int64, len(p.Budgets))
		for d := range p.Budgets {
			p.Budgets[d], p.Fixed[d] = 1+rng.Int64N(9), rng.Int64N(40)
		}
	}
	return newItems(p)
}

// TestRefute: what an argument says does not fit, fits in no assignment, and
// each argument is the one now and then.
func TestRefute(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(81, 82))
	said, missed := map[string]int{}, 0
	for i := range 30_000 {
		it := drawAssign(rng)
		caps := make([]int64, len(it.problem.Budgets))
		even := it.total/int64(len(caps)) + rng.Int64N(8)
		for d := range caps {
			caps[d] = even
			if it.problem.Fixed != nil {
				caps[d] += rng.Int64N(21) - 11
			}
		}
		fit := fitsUnder(it.weight, caps)
		why := it.refute(caps)
		if why != "" && fit {
			t.Fatalf("%d: %v fit into %v, and are refuted by %s", i, it.weight, caps, why)
		}
		said[why]++
		if why == "" && !fit {
			missed++
		}
	}
	for _, why := range []string{byAverage, byLargest, byCount, byCrowd, byHalves, bySums, byFixed} {
		if said[why] < 10 {
			t.Errorf("%s: %d times", why, said[why])
		}
	}
	if missed > 1500 {
		t.Errorf("%d of 30,000 that do not fit are not refuted: %v", missed, said)
	}
}

// TestAverage: no assignment is below the average, nor, where nothing fits
// under caps, below the next share above them.
func TestAverage(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(83, 84))
	met := 0
	for i := range 600 {
		it := drawAssign(rng)
		best := leastShare(it)
		low, why := it.average()
		if low.Cmp(best) > 0 {
			t.Fatalf("%d: %v on %v beside %v: no share is said to be below %v (%s), and one is %v", i, it.problem.Sizes, it.problem.Budgets, it.problem.Fixed, low, why, best)
		}
		if low.Cmp(best) == 0 {
			met++
		}
		if best.Sign() == 0 {
			continue // nothing to place
		}
		limit := new(big.Rat).Mul(best, big.NewRat(rng.Int64N(20), 20))
		caps := it.room(limit, false)
		if fitsUnder(it.weight, slices.Clone(caps)) {
			t.Fatalf("%d: under a limit of %v everything fits into %v, and the least share is %v", i, limit, caps, best)
		}
		for d, c := range it.room(limit, true) { // the most units that are a share below it
			load := func(c int64) *big.Rat { return big.NewRat(it.fixed(d)+c*it.unit, it.problem.Budgets[d]) }
			if c >= 0 && load(c).Cmp(limit) >= 0 || c < it.total && load(c+1).Cmp(limit) < 0 {
				t.Fatalf("%d: %d units of device %d are said to be the most below %v", i, c, d, limit)
			}
		}
		if next := it.next(caps); next == nil || next.Cmp(best) > 0 || next.Cmp(limit) <= 0 {
			t.Fatalf("%d: nothing fits under %v, the next share is said to be %v, and the least is %v", i, limit, next, best)
		}
		if !fitsUnder(it.weight, it.room(best, false)) || fitsUnder(it.weight, it.room(best, true)) {
			t.Fatalf("%d: room under the least share %v: %v, and below it %v", i, best, it.room(best, false), it.room(best, true))
		}
	}
	if met < 150 {
		t.Errorf("the average is met in %d of 600", met)
	}
}

// leastShare is the least largest share of all assignments.
func leastShare(it *itemTable) *big.Rat {
	loads := slices.Clone(it.problem.Fixed)
	if loads == nil {
		loads = make([]int64, len(it.problem.Budgets))
	}
	var best *big.Rat
	var put func(i int)
	put = func(i int) {
		if i == len(it.problem.Sizes) {
			most := new(big.Rat)
			for d, load := range loads {
				if share := big.NewRat(load, it.problem.Budgets[d]); share.Cmp(most) > 0 {
					most = share
				}
			}
			best = lower(best, most)
			return
		}
		for d := range loads {
			loads[d] += it.problem.Sizes[i]
			put(i + 1)
			loads[d] -= it.problem.Sizes[i]
		}
	}
	put(0)
	return best
}
