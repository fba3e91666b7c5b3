package stages_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// towers returns a graph with too many down-sets to list.
func towers(rng *rand.Rand, count, height int) *stages.Problem {
	p := &stages.Problem{Devices: 16, Replicas: 48, Data: []int{1, 2, 3, 4, 6, 8, 12, 16}, Tensor: []int{1, 2, 4}, Capacity: 900, Resync: 0.01}
	for i := range count * height {
		node := stages.Node{Name: "n"}
		time := 1 + rng.Float64()
		for tensor := range p.Tensor {
			share := math.Pow(0.6, float64(tensor))
			node.Choices = append(node.Choices, []stages.Choice{
				{Time: time * share, Weights: 3 * share, InFlight: 4 * share, Fixed: 5 * share},
				{Time: time * share * 4 / 3, Weights: 3 * share, InFlight: 1 * share, Fixed: 6 * share},
			})
		}
		p.Nodes = append(p.Nodes, node)
		if i%height > 0 {
			wire := []float64{rng.Float64(), rng.Float64(), rng.Float64()}
			p.Edges = append(p.Edges, stages.Edge{From: i - 1, To: i, Send: wire, Receive: wire})
		}
	}
	return p
}

// countdown is a context that ends after so many calls of Err, so its end does not depend on the
// load of the machine.
type countdown struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (c *countdown) Err() error {
	c.left--
	if c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// TestWide: a graph with too many down-sets has an answer and a bound, and the search ends with its
// context.
func TestWide(t *testing.T) {
	t.Parallel()
	p := towers(rand.New(rand.NewPCG(5, 6)), 6, 40)
	ctx := &countdown{context.Background(), 1000}
	got, err := stages.Solve(ctx, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ctx.left > 0 || ctx.left < -20 {
		t.Errorf("%d looks at the time were left", ctx.left)
	}
	if _, largest, err := p.Score(&got.Plan); err != nil || largest != got.Value || got.Gap() > 0.12 || got.LowerBound > got.Value {
		t.Errorf("%v (%v), said %v, bound %v", largest, err, got.Value, got.LowerBound)
	}
	if !strings.Contains(got.Method, "places of one order") {
		t.Errorf("%s of a graph of 41⁶ down-sets", got.Method)
	}
}
