package chain_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

func solve(t *testing.T, p chain.Problem, s chain.Settings) chain.Result {
	t.Helper()
	res, err := chain.Solve(t.Context(), p, s)
	if err != nil {
		t.Fatal(err)
	}
	verify(t, p, res)
	return res
}

// verify compares a Result with its map.
func verify(t *testing.T, p chain.Problem, res chain.Result) {
	t.Helper()
	if !allowed(&p, res.Cuts, res.GroupDevice) {
		t.Fatalf("cuts %v, groups on %v: not a map of the problem", res.Cuts, res.GroupDevice)
	}
	worst, at, squares := chain.Share{}, 0, 0.0
	for d, b := range p.Budgets {
		mask := uint64(0)
		for g, e := range res.GroupDevice {
			if e == d {
				mask |= 1 << g
			}
		}
		peak := p.Peak(d, res.Cuts[d], res.Cuts[d+1], mask)
		if peak != res.Peaks[d] {
			t.Fatalf("Peaks[%d] = %d, is %d", d, res.Peaks[d], peak)
		}
		if s := (chain.Share{Peak: peak, Budget: b}); d == 0 || worst.Cmp(s) < 0 {
			worst, at = s, d
		}
		squares += math.Pow(float64(peak)/float64(b), 2)
	}
	if worst.Cmp(res.Value) != 0 || at != res.Bottleneck {
		t.Fatalf("Value %v on device %d, is %v on %d", res.Value, res.Bottleneck, worst, at)
	}
	if !near(squares, res.Squares) {
		t.Fatalf("Squares = %v, is %v", res.Squares, squares)
	}
	if c := res.LowerBound.Cmp(res.Value); c > 0 || (c == 0) != res.Optimal() {
		t.Fatalf("Value %v, LowerBound %v, Optimal %v", res.Value, res.LowerBound, res.Optimal())
	}
	if res.Bound == "" || res.SquaresProved && !res.Optimal() {
		t.Fatalf("Bound %q, Optimal %v, SquaresProved %v", res.Bound, res.Optimal(), res.SquaresProved)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(math.Abs(a), math.Abs(b)) }

func rat(s chain.Share) *big.Rat { return big.NewRat(s.Peak, s.Budget) }

// judge solves p, compares the answer with exhaustive search, and returns it.
func judge(t *testing.T, p chain.Problem, s chain.Settings) chain.Result {
	t.Helper()
	want := exhaustive(&p)
	res, err := chain.Solve(t.Context(), p, s)
	var empty *chain.EmptyError
	if conflict := new(chain.ConflictError); errors.As(err, &conflict) || errors.As(err, &empty) {
		if want.Maps > 0 {
			t.Fatalf("%v, but %d maps exist", err, want.Maps)
		}
		return res
	}
	if err != nil {
		t.Fatal(err)
	}
	if want.Maps == 0 {
		t.Fatal("found a map, exhaustive search none")
	}
	verify(t, p, res)
	if rat(res.LowerBound).Cmp(want.Share) > 0 {
		t.Fatalf("LowerBound %v, optimum %v", res.LowerBound, want.Share)
	}
	if res.Optimal() && rat(res.Value).Cmp(want.Share) != 0 {
		t.Fatalf("Value %v, optimum %v", res.Value, want.Share)
	}
	if w, _ := want.Squares.Float64(); res.SquaresProved && !near(res.Squares, w) {
		t.Fatalf("Squares %v, least %v", res.Squares, w)
	}
	return res
}

// TestExhaustive compares thousands of small problems with exhaustive search.
func TestExhaustive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		shape shape
		runs  uint64
	}{
		{"chain", shape{items: 9, devices: 4, cost: 12}, 800},
		{"huge", shape{items: 7, devices: 4, cost: 1 << 55}, 400},
		{"perDevice", shape{items: 8, devices: 4, cost: 9, perDevice: true}, 600},
		{"moreDevices", shape{items: 3, devices: 6, cost: 9}, 400},
		{"timeline", shape{items: 8, devices: 4, cost: 9, timeline: true, perDevice: true}, 800},
		{"groups", shape{items: 5, devices: 3, groups: 2, cost: 12}, 700},
		{"groupsPerDevice", shape{items: 5, devices: 3, groups: 2, cost: 5, perDevice: true}, 500},
		{"groupsTimeline", shape{items: 5, devices: 3, groups: 2, cost: 7, timeline: true, perDevice: true}, 600},
		{"pins", shape{items: 7, devices: 4, groups: 2, cost: 12, pins: true}, 1200},
		{"pinsThreeGroups", shape{items: 7, devices: 3, groups: 3, cost: 12, pins: true}, 700},
		{"pinsTimeline", shape{items: 7, devices: 4, groups: 2, cost: 7, timeline: true, perDevice: true, pins: true}, 700},
		{"messages", shape{items: 9, devices: 4, cost: 12, perDevice: true, messages: true, filled: true}, 1200},
		{"messagesTimeline", shape{items: 9, devices: 5, cost: 20, timeline: true, perDevice: true, messages: true, filled: true}, 1200},
		{"messagesGroups", shape{items: 5, devices: 3, groups: 2, cost: 12, perDevice: true, messages: true}, 700},
		{"messagesGroupsPins", shape{items: 6, devices: 3, groups: 3, cost: 9, timeline: true, pins: true, messages: true}, 700},
		{"messagesEmpty", shape{items: 7, devices: 5, cost: 15, perDevice: true, messages: true}, 700},
		{"messagesPins", shape{items: 9, devices: 4, cost: 12, timeline: true, pins: true, messages: true, filled: true}, 1200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for seed := range tt.runs {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					p := random(rand.New(rand.NewPCG(seed, 1)), tt.shape)
					res := judge(t, p, chain.Settings{})
					if res.Cuts != nil && (!res.Optimal() || !res.SquaresProved) {
						t.Fatalf("Optimal %v, SquaresProved %v", res.Optimal(), res.SquaresProved)
					}
				})
			}
		})
	}
}

// TestStopped ends the search after every number of probes and checks that the bound is valid.
func TestStopped(t *testing.T) {
	for seed := range uint64(150) {
		p := random(rand.New(rand.NewPCG(seed, 2)), shape{items: 6, devices: 3, groups: 2, cost: 1000, timeline: seed%2 == 0})
		for probes := 1; ; probes++ {
			res := judge(t, p, chain.Settings{Probes: probes})
			if !res.Stopped {
				break
			}
			if res.Optimal() || res.SquaresProved {
				t.Fatalf("stopped after %d probes: %+v", probes, res)
			}
		}
	}
}

// TestDescent lets fewer groups be free than there are.
func TestDescent(t *testing.T) {
	optimal := 0
	const runs = 300
	for seed := range uint64(runs) {
		s := shape{items: 5, devices: 3, groups: 4, cost: 12, timeline: seed%3 == 0, pins: seed%2 == 0, messages: seed%5 > 2}
		res := judge(t, random(rand.New(rand.NewPCG(seed, 3)), s), chain.Settings{FreeGroups: 1})
		if res.Optimal() || res.Cuts == nil {
			optimal++
		}
	}
	t.Logf("proved or conflicting: %d of %d", optimal, runs)
	if optimal < runs/2 {
		t.Errorf("proved only %d of %d", optimal, runs)
	}
}

// TestRough gives the second objective too few cells. Its map must keep the largest share, and must
// not be called proved.
func TestRough(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	p := random(rng, shape{items: 0, devices: 1, cost: 9})
	for p.Items < 300 || len(p.Budgets) < 3 {
		p = random(rng, shape{items: 400, devices: 6, cost: 1000, timeline: true, groups: 1})
	}
	full := solve(t, p, chain.Settings{})
	for _, cells := range []int64{1, 1 << 10, 1 << 14, 1 << 16} {
		res := solve(t, p, chain.Settings{Cells: cells})
		if !res.Optimal() || res.Value.Cmp(full.Value) != 0 || res.Squares < full.Squares*(1-1e-12) {
			t.Errorf("Cells %d: %v, squares %v; in full %v, squares %v", cells, res.Value, res.Squares, full.Value, full.Squares)
		}
		if res.SquaresProved && !near(res.Squares, full.Squares) {
			t.Errorf("Cells %d: squares %v claimed, least is %v", cells, res.Squares, full.Squares)
		}
	}
}

// TestNoSquares: without the second objective the largest share is still proved, with and without a
// Floor.
func TestNoSquares(t *testing.T) {
	uneven := 0
	for seed := range uint64(150) {
		p := random(rand.New(rand.NewPCG(seed, 14)), shape{items: 40, devices: 5, cost: 50, messages: seed%2 == 0, filled: seed%4 == 0})
		full, err := chain.Solve(t.Context(), p, chain.Settings{})
		if err != nil {
			continue
		}
		res := solve(t, p, chain.Settings{NoSquares: true})
		if !res.Optimal() || res.SquaresProved || res.Value.Cmp(full.Value) != 0 {
			t.Errorf("seed %d: %v (optimal %v, squares %v), in full %v", seed, res.Value, res.Optimal(), res.SquaresProved, full.Value)
		}
		if res.Squares > full.Squares*(1+1e-9) {
			uneven++
		}
	}
	if uneven < 10 {
		t.Errorf("only %d maps are less even", uneven)
	}
}

// TestDivide compares the two methods of the second objective on chains too long for exhaustive
// search.
func TestDivide(t *testing.T) {
	for seed := range uint64(150) {
		p := random(rand.New(rand.NewPCG(seed, 5)), shape{
			items: 200, devices: 10, groups: 2, cost: 1 << 30, perDevice: seed%2 == 0, pins: seed%3 == 0,
		})
		fast, err := chain.Solve(t.Context(), p, chain.Settings{})
		if err != nil {
			continue
		}
		verify(t, p, fast)
		p.Additive = false
		slow := solve(t, p, chain.Settings{})
		if fast.Value.Cmp(slow.Value) != 0 || !near(fast.Squares, slow.Squares) || !slices.Equal(fast.GroupDevice, slow.GroupDevice) {
			t.Errorf("seed %d: divided %v %v %v, scanned %v %v %v", seed,
				fast.Value, fast.Squares, fast.GroupDevice, slow.Value, slow.Squares, slow.GroupDevice)
		}
	}
}

// TestCancelled stops before the first probe, and during the search.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := uniform(slices.Repeat([]int64{10, 11, 17}, 50), 7)
	res, err := chain.Solve(ctx, p, chain.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, p, res)
	if !res.Stopped || res.Optimal() || res.SquaresProved {
		t.Errorf("cancelled at once: %+v", res)
	}

	ctx, cancel = context.WithCancel(t.Context())
	res, err = chain.Solve(ctx, p, chain.Settings{Progress: func(g chain.Progress) {
		if g.Done == 3 {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	verify(t, p, res)
	if !res.Optimal() || res.SquaresProved {
		t.Errorf("cancelled in the second objective: %+v", res)
	}
}

// TestDeterministic solves each problem twice and expects the same map.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(50) {
		p := random(rand.New(rand.NewPCG(seed, 6)), shape{items: 60, devices: 8, groups: 3, cost: 4, timeline: seed%2 == 0})
		a, b := solve(t, p, chain.Settings{}), solve(t, p, chain.Settings{})
		if !slices.Equal(a.Cuts, b.Cuts) || !slices.Equal(a.GroupDevice, b.GroupDevice) {
			t.Fatalf("seed %d: %v %v, then %v %v", seed, a.Cuts, a.GroupDevice, b.Cuts, b.GroupDevice)
		}
	}
}

// uniform is an additive chain on k devices with a budget of 1000 bytes.
func uniform(costs []int64, k int) chain.Problem {
	sum := prefix(costs)
	return chain.Problem{
		Items: len(costs), Budgets: slices.Repeat([]int64{1000}, k), Additive: true,
		Peak: func(_, a, b int, _ uint64) int64 { return sum[b] - sum[a] },
	}
}
