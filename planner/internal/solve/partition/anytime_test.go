package partition

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// nearChain is a chain with some edges that skip ahead.
func nearChain(r *rand.Rand, nodes, skips int, kinds ...Kind) *Problem {
	p := &Problem{Kinds: kinds}
	for i := range nodes {
		n := Node{Size: float64(1 + r.IntN(100)), Transfer: float64(r.IntN(20)) / 4, Group: i}
		for range kinds {
			n.Time = append(n.Time, float64(1+r.IntN(100))/10)
		}
		p.Nodes = append(p.Nodes, n)
		if i > 0 && r.IntN(20) > 0 {
			p.Edges = append(p.Edges, [2]int{i - 1, i})
		}
	}
	for range skips {
		a := r.IntN(nodes - 3)
		p.Edges = append(p.Edges, [2]int{a, a + 2 + r.IntN(min(50, nodes-a-2))})
	}
	return p
}

func scored(t *testing.T, p *Problem, s *Solution, err error) float64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if _, largest, err := p.Score(s.Place); err != nil || largest != s.Largest || s.LowerBound > largest {
		t.Fatalf("%v, scored %v (%v), bound %v", s.Largest, largest, err, s.LowerBound)
	}
	return s.Largest
}

// A large problem has an answer, though the context is over before it begins
// and the table of an exact search would take more memory than there is.
func TestLargeNearChainsAreAnswered(t *testing.T) {
	over, stop := context.WithCancel(context.Background())
	stop()
	r := rand.New(rand.NewPCG(1, 2))
	p := nearChain(r, 8_000, 30, Kind{Count: 4000, Capacity: 5000}, Kind{Count: 2, Capacity: math.Inf(1)})
	for name, solve := range map[string]func(context.Context, *Problem, Settings) (*Solution, error){"contiguous": Contiguous, "any": Any} {
		s, err := solve(over, p, Settings{})
		total := 0.0
		for i := range p.Nodes {
			total += min(p.Nodes[i].Time[0], p.Nodes[i].Time[1])
		}
		if got := scored(t, p, s, err); got > 8*total/4002 || !s.Stopped {
			t.Errorf("%s: %v, stopped %v; the average is %v", name, got, s.Stopped, total/4002)
		}
	}
}

// Any starts from the contiguous answer, so that it is never worse, whenever
// it is stopped.
func TestAnyIsNeverWorseThanContiguous(t *testing.T) {
	over, stop := context.WithCancel(context.Background())
	stop()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		capacity := math.Inf(1)
		if seed%2 == 0 {
			capacity = 1500
		}
		kinds := []Kind{{Count: 2 + r.IntN(6), Capacity: capacity}, {Count: r.IntN(3), Capacity: math.Inf(1), FreeTransfers: seed%3 == 0}}
		kinds[1].Count = max(kinds[1].Count, 1)
		nodes := 10 + r.IntN(60)
		p := nearChain(r, nodes, r.IntN(nodes), kinds...)
		for _, how := range []struct {
			name string
			ctx  context.Context //nolint:containedctx // a row
			set  Settings
		}{
			{"over before it begins", over, Settings{}},
			{"a limit of 1 ms", context.Background(), Settings{TimeLimit: time.Millisecond}},
		} {
			contiguous, err := Contiguous(how.ctx, p, how.set)
			want := scored(t, p, contiguous, err)
			anywhere, err := Any(how.ctx, p, how.set)
			if got := scored(t, p, anywhere, err); got > want {
				t.Errorf("seed %d, %s: any %v (%s), contiguous %v (%s)", seed, how.name, got, anywhere.Method, want, contiguous.Method)
			}
		}
	}
}

// countdown is a context that ends after so many looks at it, whatever the
// machine is busy with.
type countdown struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (c *countdown) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

func (c *countdown) Err() error {
	c.left--
	if c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// While a gap is open the time given is used up; without an end to wait for the
// search ends by itself.
func TestContiguousUsesItsTime(t *testing.T) {
	p := nearChain(rand.New(rand.NewPCG(5, 5)), 60, 60, Kind{Count: 5, Capacity: math.Inf(1)})
	few := limits{few: 3, some: 6, most: 12, states: 1 << 20}
	first, err := contiguousWithin(context.Background(), p, Settings{}, few)
	scored(t, p, first, err)
	if first.Stopped || first.Optimal {
		t.Fatalf("%+v", first)
	}
	later, err := contiguousWithin(&countdown{context.Background(), 20_000}, p, Settings{}, few)
	if got := scored(t, p, later, err); !later.Stopped || got >= first.Largest {
		t.Errorf("%+v, without time %v", later, first.Largest)
	}
}
