package planner_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// pipelines and pipelineSeed make the draw of TestRandomPipelines longer:
//
//	go test ./planner -run RandomPipelines -pipelines 5000 -v
var (
	pipelines    = flag.Int("pipelines", 250, "random pipelines that TestRandomPipelines draws")
	pipelineSeed = flag.Uint64("pipeline-seed", 1, "where TestRandomPipelines begins to draw")
)

// tally counts what came of the draw.
type tally struct {
	drawn, refused, infeasible, unlinked, solved, optimal, even int
	crashes, errors, wrong, bounds, notFit                      int
	loops, climbed                                              int
}

func (c *tally) String() string {
	return fmt.Sprintf("%d random pipelines: %d crashes, %d errors, %d wrong values, %d bounds above brute force, %d false \"does not fit\"; %d solved, of them %d proved optimal (%.1f %%) and %d even; %d do not fit, %d lack a link, %d refused; without trying all cuts the best was found in %d of %d interleaved",
		c.drawn, c.crashes, c.errors, c.wrong, c.bounds, c.notFit, c.solved, c.optimal, 100*float64(c.optimal)/float64(max(1, c.solved)), c.even, c.infeasible, c.unlinked, c.refused, c.climbed, c.loops)
}

// TestRandomPipelines holds the solvers of pipelines to every map there is.
func TestRandomPipelines(t *testing.T) {
	t.Parallel()
	var c tally
	for i := range *pipelines {
		seed := *pipelineSeed + uint64(i)
		p, err := randomPipeline(rand.New(rand.NewPCG(seed, 77)))
		if err != nil {
			t.Fatal(seed, err)
		}
		c.drawn++
		if fault := c.hold(t.Context(), &p); fault != "" && c.faults() < 20 {
			t.Errorf("-pipelines 1 -pipeline-seed %d: %s, %d devices, %d units, %+v: %s", seed, p.Objective, len(p.Topology.Devices), len(p.Graph.Units), p.Costs.Workload, fault)
		}
	}
	t.Log(c.String())
	if c.faults() > 0 {
		t.Errorf("%d faults", c.faults())
	}
	if 4*c.optimal < 3*c.solved || *pipelines >= 250 && (c.solved < *pipelines/4 || c.infeasible < *pipelines/20) {
		t.Errorf("%d of %d solved are proved, %d do not fit: too few, or the draw is one-sided", c.optimal, c.solved, c.infeasible)
	}
}

func (c *tally) faults() int { return c.crashes + c.errors + c.wrong + c.bounds + c.notFit }

// hold solves a problem and says what is wrong with the answer; empty:
// nothing is.
func (c *tally) hold(ctx context.Context, p *planner.Problem) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			c.crashes++
			fault = fmt.Sprint("panic: ", r)
		}
	}()
	sol, err := planner.Solve(ctx, *p, planner.Settings{TimeLimit: time.Minute})
	want := judgePipeline(p)
	var inf *planner.InfeasibleError
	var stage *planner.StageError
	var pattern *planner.PatternError
	var conflict *planner.ConflictError
	var link *planner.LinkError
	switch {
	case errors.As(err, &stage), errors.As(err, &pattern), errors.As(err, &conflict):
		c.refused++
		if want.maps > 0 && taken(p) {
			c.errors++
			return fmt.Sprintf("refused: %v, but %d maps are allowed", err, want.maps)
		}
		return ""
	case errors.As(err, &link):
		c.unlinked++
		if want.linked {
			c.errors++
			return fmt.Sprintf("%v, but a map has its links", err)
		}
		return ""
	case errors.As(err, &inf):
		c.infeasible++
		if want.fit > 0 {
			c.notFit++
			return fmt.Sprintf("%v, but %d maps fit (%v)", err, want.fit, want.share)
		}
		if p.Objective == planner.Memory && inf.Best.LowerBound > want.share*(1+1e-9) {
			c.bounds++
			return fmt.Sprintf("bound %v, but the best share is %v", inf.Best.LowerBound, want.share)
		}
		return ""
	case err != nil:
		c.errors++
		return err.Error()
	}
	c.solved++
	if fault := c.looped(ctx, p, &want); fault != "" {
		return fault
	}
	return c.compare(p, sol, &want)
}

// looped holds the bounds of an interleaved pipeline, and what is found where
// not all cuts are tried, to the best of all.
func (c *tally) looped(ctx context.Context, p *planner.Problem, want *judged) string {
	if p.Costs.Workload.Schedule != costmodel.Interleaved {
		return ""
	}
	weights, run, found, err := p.LoopedBounds(ctx)
	switch {
	case err != nil:
		c.errors++
		return err.Error()
	case max(weights, run) > want.share*(1+1e-12):
		c.bounds++
		return fmt.Sprintf("bounds %v (weights) and %v (largest run), but the best of all maps is %v", weights, run, want.share)
	case found < want.share*(1-1e-12):
		c.wrong++
		return fmt.Sprintf("found %v, below the best of all maps, %v", found, want.share)
	}
	c.loops++
	if found <= want.share*(1+1e-9) {
		c.climbed++
	}
	return ""
}

// taken reports that the engine takes so many micro-batches.
func taken(p *planner.Problem) bool {
	w := &p.Costs.Workload
	s := costmodel.Schedule{Kind: w.Schedule, Stages: int64(len(p.Topology.Devices)), Chunks: max(1, w.VirtualStages), MicroBatches: w.MicroBatches}
	return s.Check() == nil || w.Mode == costmodel.Infer && w.Schedule != costmodel.Interleaved
}

// compare holds an answer to the best of all maps.
func (c *tally) compare(p *planner.Problem, sol *planner.Solution, want *judged) string {
	best, second, even := want.share, want.squares, 0.
	for d := range sol.Devices {
		even += sol.Devices[d].Share() * sol.Devices[d].Share()
	}
	if p.Objective == planner.Time {
		best, second, even = want.seconds, want.even, sol.LargestShare()
	}
	switch {
	case sol.LowerBound > best*(1+2e-9):
		c.bounds++
		return fmt.Sprintf("bound %v (%s), but the best of all maps is %v", sol.LowerBound, sol.Bound, best)
	case sol.Value < best*(1-2e-9):
		c.wrong++
		return fmt.Sprintf("value %v is below the best of all maps, %v", sol.Value, best)
	case sol.Status != planner.Optimal:
		return ""
	case sol.Value > best*(1+2e-9):
		c.wrong++
		return fmt.Sprintf("value %v is \"optimal\", the best of all maps %v", sol.Value, best)
	}
	c.optimal++
	if sol.Even {
		c.even++
		if even > second*(1+1e-8) {
			c.wrong++
			return fmt.Sprintf("\"even\" at %v, the most even of all maps with this value %v", even, second)
		}
	}
	return ""
}
