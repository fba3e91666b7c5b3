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
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// pipelines and pipelineSeed change the samples of TestRandomPipelines:
//
//	go test ./planner -run RandomPipelines -pipelines 5000 -v
var (
	pipelines    = flag.Int("pipelines", 60, "random pipelines that TestRandomPipelines draws")
	pipelineSeed = flag.Uint64("pipeline-seed", 1, "where TestRandomPipelines begins to draw")
)

// tally counts results.
type tally struct {
	sampled, refused, infeasible, unlinked, solved, optimal, even int
	crashes, errors, wrong, bounds, notFit                        int
}

func (c *tally) String() string {
	return fmt.Sprintf("%d random pipelines: %d crashes, %d errors, %d wrong values, %d bounds above brute force, %d false \"does not fit\"; %d solved, of them %d proved optimal (%.1f %%) and %d even; %d do not fit, %d lack a link, %d refused",
		c.sampled, c.crashes, c.errors, c.wrong, c.bounds, c.notFit, c.solved, c.optimal, 100*float64(c.optimal)/float64(max(1, c.solved)), c.even, c.infeasible, c.unlinked, c.refused)
}

// TestRandomPipelines compares the solvers of pipelines with all maps.
func TestRandomPipelines(t *testing.T) {
	t.Parallel()
	var c tally
	for i := range *pipelines {
		seed := *pipelineSeed + uint64(i)
		p, err := randomproblem.Pipeline(rand.New(rand.NewPCG(seed, 77)))
		if err != nil {
			t.Fatal(seed, err)
		}
		if p.Objective == planner.Time && p.Costs.Workload.Mode == costmodel.Infer && i%2 == 0 {
			p.Objective = planner.Latency
		}
		c.sampled++
		if fault := c.hold(t.Context(), &p); fault != "" && c.faults() < 20 {
			t.Errorf("-pipelines 1 -pipeline-seed %d: %s, %d devices, %d units, %+v: %s", seed, p.Objective, len(p.Topology.Devices), len(p.Graph.Units), p.Costs.Workload, fault)
		}
	}
	t.Log(c.String())
	if c.faults() > 0 {
		t.Errorf("%d faults", c.faults())
	}
	if 4*c.optimal < 3*c.solved || *pipelines >= 60 && (c.solved < *pipelines/4 || c.infeasible < *pipelines/20) {
		t.Errorf("%d of %d solved are proved, %d do not fit: too few, or the draw is one-sided", c.optimal, c.solved, c.infeasible)
	}
}

func (c *tally) faults() int { return c.crashes + c.errors + c.wrong + c.bounds + c.notFit }

// hold solves a problem and returns a fault of the answer; empty if there is none.
func (c *tally) hold(ctx context.Context, p *planner.Problem) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			c.crashes++
			fault = fmt.Sprint("panic: ", r)
		}
	}()
	sol, err := planner.Solve(ctx, *p, planner.Settings{TimeLimit: time.Minute})
	want := exhaustive.Pipeline(p)
	var inf *planner.InfeasibleError
	var stage *planner.StageError
	var constraint *planner.ConstraintError
	var link *instance.LinkError
	switch {
	case errors.As(err, &stage), errors.As(err, &constraint):
		c.refused++
		if want.Maps > 0 && taken(p) {
			c.errors++
			return fmt.Sprintf("refused: %v, but %d maps are allowed", err, want.Maps)
		}
		return ""
	case errors.As(err, &link):
		c.unlinked++
		if want.Linked {
			c.errors++
			return fmt.Sprintf("%v, but a map has its links", err)
		}
		return ""
	case errors.As(err, &inf):
		c.infeasible++
		if want.Fit > 0 {
			c.notFit++
			return fmt.Sprintf("%v, but %d maps fit (%v)", err, want.Fit, want.Share)
		}
		if p.Objective == planner.Memory && inf.Best.LowerBound > want.Share*(1+1e-9) {
			c.bounds++
			return fmt.Sprintf("bound %v, but the best share is %v", inf.Best.LowerBound, want.Share)
		}
		return ""
	case err != nil:
		c.errors++
		return err.Error()
	}
	c.solved++
	return c.compare(p, sol, &want)
}

// taken reports that the engine accepts this number of micro-batches.
func taken(p *planner.Problem) bool {
	w := &p.Costs.Workload
	s := costmodel.Schedule{Kind: w.Schedule, Stages: int64(len(p.Topology.Devices)), Chunks: max(1, w.VirtualStages), MicroBatches: w.MicroBatches}
	return s.Check() == nil || w.Mode == costmodel.Infer && w.Schedule != costmodel.Interleaved
}

// compare compares an answer with the best of all maps.
func (c *tally) compare(p *planner.Problem, sol *planner.Solution, want *exhaustive.Judged) string {
	best, second, even := want.Share, want.Squares, 0.
	for d := range sol.Devices {
		even += sol.Devices[d].Share * sol.Devices[d].Share
	}
	if p.Objective != planner.Memory {
		best, second, even = want.Seconds, want.Even, sol.LargestShare
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
	if sol.EvenProved {
		c.even++
		if even > second*(1+1e-8) {
			c.wrong++
			return fmt.Sprintf("\"even\" at %v, the most even of all maps with this value %v", even, second)
		}
	}
	return ""
}
