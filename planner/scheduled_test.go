package planner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner"
)

// scheduleProblem returns a small model on GPUs with little memory, under devmap's engine.
func scheduleProblem(t *testing.T, gpus int, batches, capacity int64, recompute string) planner.Problem {
	t.Helper()
	out := gridProblem(t, gpus, costmodel.Devmap, planner.Time)
	for i := range out.Topology.Devices {
		out.Topology.Devices[i].CapacityBytes, out.Topology.Devices[i].Host = capacity, "a"
	}
	work := &out.Workload
	work.DP, work.TP, work.PP, work.CP, work.Precision = 0, 0, 0, 0, costmodel.BF16True
	work.MicroBatches, work.Batch, work.Schedule, work.Recompute = batches, 2*batches, costmodel.AutoSchedule, recompute
	return out
}

// The chosen order is never slower than a published one at the same memory, and no published one is
// below its bound.
func TestChosenSchedules(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 2))
	fitted, own := 0, 0
	for range 24 {
		gpus, batches := 2+random.IntN(3), int64(2+random.IntN(7))
		capacity := int64(float64(2+random.IntN(8)) / 2 / float64(gpus) * (2 << 30))
		recompute := []string{costmodel.RecomputeNone, "auto"}[random.IntN(2)]
		problem := scheduleProblem(t, gpus, batches, capacity, recompute)
		name := fmt.Sprintf("%d GPUs of %v, %d micro-batches, recompute %s", gpus, costmodel.Bytes(capacity), batches, recompute)
		chosen, err := planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Hour})
		var large *planner.InfeasibleError
		if err != nil && !errors.As(err, &large) {
			t.Fatalf("%s: %v", name, err)
		}
		if err == nil && chosen.LargestShare > 1 {
			t.Errorf("%s: share %v", name, chosen.LargestShare)
		}
		if err == nil && chosen.Costs.Workload.Schedule.OwnOrder() {
			own++
		}
		for _, kind := range costmodel.ScheduleKinds() {
			for _, mode := range []string{costmodel.RecomputeNone, costmodel.RecomputeFull} {
				if recompute != "auto" && mode != recompute {
					continue
				}
				one := problem
				one.Workload.Schedule, one.Workload.Recompute = kind, mode
				other, otherErr := planner.Solve(t.Context(), one, planner.Settings{TimeLimit: time.Hour})
				if otherErr != nil {
					continue
				}
				fitted++
				if err != nil {
					t.Errorf("%s: %s, recompute %s fits, and no schedule was found: %v", name, kind, mode, err)
				} else if chosen.Value > other.Value*(1+1e-9) || chosen.LowerBound > other.Value*(1+1e-9) {
					t.Errorf("%s: %s takes %v, at least %v; %s, recompute %s takes %v", name, chosen.Costs.Workload.Schedule, chosen.Value, chosen.LowerBound, kind, mode, other.Value)
				}
			}
		}
	}
	if fitted < 40 || own < 5 {
		t.Errorf("%d published orders fit, and %d orders are the search's own", fitted, own)
	}
}

// Blocks are recomputed one by one as memory shrinks, and the step grows with them.
func TestChosenBlocks(t *testing.T) {
	last, lists := 0., 0
	for _, capacity := range []int64{8 << 30, 1800 << 20, 1600 << 20, 1450 << 20, 1350 << 20} {
		problem := scheduleProblem(t, 2, 8, capacity, "auto")
		problem.Workload.Schedule = costmodel.OneFOneB
		solution := fixtures.Must(planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Hour}))(t)
		work := &solution.Costs.Workload
		if capacity == 8<<30 && work.Recompute != costmodel.RecomputeNone {
			t.Errorf("recompute %s with free memory", work.Recompute)
		}
		if work.ListsRecomputed() {
			lists++
		}
		if solution.Value < last*(1-1e-9) || solution.LargestShare > 1 {
			t.Errorf("%v: a step of %v after %v, share %v", costmodel.Bytes(capacity), solution.Value, last, solution.LargestShare)
		}
		last = solution.Value
	}
	if lists == 0 {
		t.Error("no list of blocks was chosen")
	}
}

// The smallest memory that a refusal names works, and was too little before.
func TestSmallestMemory(t *testing.T) {
	for _, recompute := range []string{costmodel.RecomputeNone, "auto"} {
		problem := scheduleProblem(t, 3, 6, 700<<20, recompute)
		_, err := planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Hour})
		var large *planner.InfeasibleError
		if !errors.As(err, &large) {
			t.Fatalf("%v", err)
		}
		var gib float64
		_, words, _ := strings.Cut(err.Error(), "tried (")
		if _, err := fmt.Sscanf(words, "%f GiB on each GPU", &gib); err != nil {
			t.Fatalf("%v in %v", err, large)
		}
		least := int64(gib * (1 << 30))
		if least <= 700<<20 {
			t.Errorf("the smallest memory is %v", costmodel.Bytes(least))
		}
		problem.Topology.Devices = slices.Clone(problem.Topology.Devices)
		for i := range problem.Topology.Devices {
			problem.Topology.Devices[i].CapacityBytes = least
		}
		if solution, err := planner.Solve(t.Context(), problem, planner.Settings{TimeLimit: time.Hour}); err != nil || solution.LargestShare > 1 {
			t.Errorf("with %v: %v", costmodel.Bytes(least), err)
		}
	}
}

// A front of schedules has shorter steps with more memory.
func TestFrontOfSchedules(t *testing.T) {
	problem := scheduleProblem(t, 2, 2, 8<<30, "auto")
	front := fixtures.Must(planner.SolveFront(t.Context(), problem, planner.Settings{TimeLimit: time.Hour}))(t)
	if len(front.Points) < 3 {
		t.Errorf("%d points", len(front.Points))
	}
	for i := 1; i < len(front.Points); i++ {
		before, point := front.Points[i-1], front.Points[i]
		if point.Value <= before.Value || point.LargestShare >= before.LargestShare {
			t.Errorf("point %d: %v s and %v after %v s and %v", i, point.Value, point.LargestShare, before.Value, before.LargestShare)
		}
	}
}

// An order whose GPUs wait for each other in a ring is refused, whatever the objective. With as many
// messages as the channel holds, it has a step.
func TestOrdersInARing(t *testing.T) {
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		for order, ring := range map[costmodel.ScheduleKind]bool{"order:F*8,B*8/FB*8": true, "order:FFFFF,BF*3,B*5/FB*8": false} {
			problem := scheduleProblem(t, 2, 8, 80<<30, costmodel.RecomputeNone)
			problem.Objective, problem.Workload.Schedule = objective, order
			_, err := planner.Solve(t.Context(), problem, planner.Settings{})
			var refused *costmodel.FieldError
			if !ring && err != nil || ring && (!errors.As(err, &refused) || !strings.Contains(err.Error(), "in a ring")) {
				t.Errorf("%v, %s: %v", objective, order, err)
			}
		}
	}
}
