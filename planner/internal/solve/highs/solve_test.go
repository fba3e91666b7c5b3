package highs_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/highs"
)

var inf = math.Inf(1)

func solve(t *testing.T, m *highs.Model, o highs.Options) highs.Result {
	t.Helper()
	r, err := highs.Solve(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }

// TestLinear: the production plan of Dantzig's textbook example, maximum 36 at (2, 6).
func TestLinear(t *testing.T) {
	m := &highs.Model{}
	x := m.Column(highs.Column{Cost: -3, Upper: inf})
	y := m.Column(highs.Column{Cost: -5, Upper: inf})
	m.Row(-inf, 4, highs.Term{Column: x, Coefficient: 1})
	m.Row(-inf, 12, highs.Term{Column: y, Coefficient: 2})
	m.Row(-inf, 18, highs.Term{Column: x, Coefficient: 3}, highs.Term{Column: y, Coefficient: 2})
	r := solve(t, m, highs.Options{})
	if r.Status != highs.Optimal || !near(r.Objective, -36) || !near(r.Bound, -36) || !near(r.Values[x], 2) || !near(r.Values[y], 6) {
		t.Errorf("got %+v, want −36 at (2, 6)", r)
	}
}

// TestKnapsack compares 0-1 knapsacks with enumeration.
func TestKnapsack(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	for range 10 {
		const n = 10
		m := &highs.Model{}
		var terms []highs.Term
		var value, weight [n]int
		total := 0
		for i := range n {
			value[i], weight[i] = 1+random.IntN(50), 1+random.IntN(30)
			total += weight[i]
			terms = append(terms, highs.Term{Column: m.Column(highs.Column{Cost: -float64(value[i]), Upper: 1, Integer: true}), Coefficient: float64(weight[i])})
		}
		m.Row(-inf, float64(total/2), terms...)
		best := 0
		for set := range 1 << n {
			v, w := 0, 0
			for i := range n {
				if set>>i&1 == 1 {
					v, w = v+value[i], w+weight[i]
				}
			}
			if w <= total/2 {
				best = max(best, v)
			}
		}
		if r := solve(t, m, highs.Options{}); r.Status != highs.Optimal || !near(r.Objective, -float64(best)) || !near(r.Bound, -float64(best)) {
			t.Errorf("got %+v, want %d", r, -best)
		}
	}
}

// TestEnds: models without a solution are results, with what they are.
func TestEnds(t *testing.T) {
	one := func(c highs.Column, lower, upper float64) *highs.Model {
		m := &highs.Model{}
		m.Row(lower, upper, highs.Term{Column: m.Column(c), Coefficient: 1})
		return m
	}
	tests := map[string]struct {
		model *highs.Model
		want  highs.Status
	}{
		"infeasible":         {one(highs.Column{Upper: 1}, 2, inf), highs.Infeasible},
		"infeasible integer": {one(highs.Column{Lower: -inf, Upper: inf, Integer: true}, 0.25, 0.75), highs.Infeasible},
		"unbounded":          {one(highs.Column{Cost: -1, Upper: inf}, 0, inf), highs.Unbounded},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if r := solve(t, test.model, highs.Options{}); r.Status != test.want || r.Values != nil && test.want == highs.Infeasible {
				t.Errorf("got %+v, want %s", r, test.want)
			}
		})
	}
}

// hard is the min-max assignment of 60 items to 7 devices, which HiGHS does not
// prove in minutes.
func hard() *highs.Model {
	m := &highs.Model{}
	largest := m.Column(highs.Column{Cost: 1, Upper: inf})
	const n, k = 60, 7
	items := make([][]highs.Term, n)
	for range k {
		load := []highs.Term{{Column: largest, Coefficient: -1}}
		for i := range n {
			x := m.Column(highs.Column{Upper: 1, Integer: true})
			load = append(load, highs.Term{Column: x, Coefficient: float64(1000 + 37*i*i%911)})
			items[i] = append(items[i], highs.Term{Column: x, Coefficient: 1})
		}
		m.Row(-inf, 0, load...)
	}
	for i := range items {
		m.Row(1, 1, items[i]...)
	}
	return m
}

// TestTimeLimit: what is found by then is feasible and not below the bound.
func TestTimeLimit(t *testing.T) {
	r := solve(t, hard(), highs.Options{TimeLimit: 300 * time.Millisecond})
	if r.Status != highs.TimeLimit || len(r.Values) > 0 && r.Bound > r.Objective {
		t.Errorf("got %s, objective %v, bound %v", r.Status, r.Objective, r.Bound)
	}
}

// TestCancel: a context that ends in mid-solve ends it.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := highs.Solve(ctx, hard(), highs.Options{TimeLimit: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
}

func TestContext(t *testing.T) {
	m := &highs.Model{Columns: []highs.Column{{Upper: 1}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := highs.Solve(ctx, m, highs.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context was cancelled", err)
	}
	if r := solve(t, m, highs.Options{}); r.Status != highs.Optimal {
		t.Errorf("after a cancelled solve: %+v", r)
	}
}

func TestCheck(t *testing.T) {
	m := &highs.Model{Columns: []highs.Column{{Cost: math.NaN()}}}
	m.Row(0, 1, highs.Term{Column: 3, Coefficient: inf})
	_, err := highs.Solve(t.Context(), m, highs.Options{})
	const want = "columns[0]: a cost of NaN\nrows[0]: there is no column 3\nrows[0]: column 3 has the coefficient +Inf"
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
}
