package assign_test

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
)

// brute tries every assignment and returns the least largest share.
func brute(p assign.Problem) *big.Rat {
	loads := make([]int64, len(p.Budgets))
	copy(loads, p.Fixed)
	var best *big.Rat
	var try func(i int)
	try = func(i int) {
		if i == len(p.Sizes) {
			worst := new(big.Rat)
			for d, l := range loads {
				if share := big.NewRat(l, p.Budgets[d]); share.Cmp(worst) > 0 {
					worst = share
				}
			}
			if best == nil || worst.Cmp(best) < 0 {
				best = worst
			}
			return
		}
		for d := range loads {
			loads[d] += p.Sizes[i]
			try(i + 1)
			loads[d] -= p.Sizes[i]
		}
	}
	try(0)
	return best
}

// check holds a solution to the definitions.
func check(t *testing.T, p assign.Problem, s assign.Solution) {
	t.Helper()
	loads := make([]int64, len(p.Budgets))
	copy(loads, p.Fixed)
	for i, d := range s.Device {
		loads[d] += p.Sizes[i]
	}
	worst := 0.0
	for d, l := range loads {
		worst = max(worst, float64(l)/float64(p.Budgets[d]))
		if s.Load[d] != l {
			t.Errorf("load[%d] is %d, holds %d", d, s.Load[d], l)
		}
	}
	if len(s.Device) != len(p.Sizes) || s.Value != worst {
		t.Errorf("value %v, the loads give %v", s.Value, worst)
	}
	if s.LowerBound > s.Value || s.Optimal() && s.LowerBound != s.Value {
		t.Errorf("value %v, bound %v, optimal %v", s.Value, s.LowerBound, s.Optimal())
	}
}

// random draws a problem that brute can do, of a shape that has had faults:
// few sizes, sizes near each other, sizes with a common divisor, zeros.
func random(r *rand.Rand, equal bool) assign.Problem {
	k := 1 + r.IntN(4)
	n := r.IntN([]int{0, 12, 11, 8, 6}[k] + 1)
	p := assign.Problem{Sizes: make([]int64, n), Budgets: make([]int64, k)}
	most := []int64{3, 10, 60, 1000, 1 << 40}[r.IntN(5)]
	unit := []int64{1, 1, 7, 1 << 10}[r.IntN(4)]
	base := []int64{0, 0, 1, most}[r.IntN(4)]
	for i := range p.Sizes {
		p.Sizes[i] = (base + r.Int64N(most)) * unit
	}
	for d := range p.Budgets {
		p.Budgets[d] = 1
		if !equal {
			p.Budgets[d] = 1 + r.Int64N(9)
		}
	}
	if r.IntN(2) == 0 {
		p.Fixed = make([]int64, k)
		shared := r.Int64N(3 * most)
		for d := range p.Fixed {
			p.Fixed[d] = shared
			if !equal {
				p.Fixed[d] = r.Int64N(3 * most)
			}
		}
	}
	return p
}

func TestAgainstBruteForce(t *testing.T) {
	searched := 0
	for name, equal := range map[string]bool{"equal": true, "unequal": false} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 600 {
				p := random(r, equal)
				s, err := assign.Solve(t.Context(), p, assign.Settings{})
				if err != nil {
					t.Fatal(err)
				}
				check(t, p, s)
				if s.Nodes > 0 {
					searched++
				}
				if want, _ := brute(p).Float64(); !s.Optimal() || s.Value != want {
					t.Fatalf("%+v\ngot  %+v\nwant %v", p, s, want)
				}
			}
		})
	}
	if searched < 80 {
		t.Errorf("only %d instances needed the search", searched)
	}
}
