package downset

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// countdown is a context that ends after so many calls of Err, so its end does not depend on the
// load of the machine.
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

// TestContiguousUsesItsTime: with a deadline, the search uses all its time while there is an
// optimality gap. Without a deadline it still ends.
func TestContiguousUsesItsTime(t *testing.T) {
	p := nearChain(rand.New(rand.NewPCG(5, 5)), 80, 80, graph.Kind{Count: 6, Capacity: math.Inf(1)})
	few := limits{few: 3, some: 6, most: 12, states: 1 << 20}
	first, err := solveWithin(context.Background(), p, nil, few)
	scored(t, p, first, err)
	if first.Early() || first.Optimal() {
		t.Fatalf("%+v", first)
	}
	looks := &countdown{context.Background(), 100_000}
	later, err := solveWithin(looks, p, nil, few)
	if got := scored(t, p, later, err); !later.Early() || got > first.Value || looks.left >= 0 {
		t.Errorf("%+v, without time %v; %d looks at the clock were left", later, first.Value, looks.left)
	}
}
