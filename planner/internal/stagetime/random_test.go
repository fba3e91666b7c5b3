package stagetime_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestTimePipeline compares the shortest step of a pipeline, and the smallest largest share with
// it, with all cuts. If devices differ, it tries all their orders.
func TestTimePipeline(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 12 {
		for _, kind := range []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved} {
			gpus, chunks := 3, 1
			if kind == costmodel.Interleaved {
				gpus, chunks = 2, 2
			}
			mode := []costmodel.Mode{costmodel.Train, costmodel.Infer}[round%2]
			m := []int64{4, 6, 16}[round%3]
			p := randomproblem.PipelineOf(t, randomproblem.SixBlocks, gpus, costmodel.Workload{Mode: mode, Schedule: kind, Batch: 48, MicroBatches: m, Seq: 512, NewTokens: 0})
			if round >= 2 {
				vary(rng, &p)
			}
			p.Objective = planner.Time
			t.Run(fmt.Sprint(round, kind, mode), func(t *testing.T) { checkPipeline(t, p, gpus, chunks) })
		}
	}
}

// vary changes the units' times and slows the links. In half of the problems, devices differ.
func vary(rng *rand.Rand, p *planner.Problem) {
	for u := range p.Costs.Units {
		w := &p.Costs.Units[u].Work
		w.Forward.Products *= 0.5 + 2*rng.Float64()
		w.Backward.Products *= 0.5 + 2*rng.Float64()
		w.Update *= 1 + 100*rng.Float64()
	}
	p.Costs.Workload.World = int64(len(p.Topology.Devices))
	p.Costs.Comm = costmodel.Comm{Peer: rng.Int64N(2) << 29} // an inner rank has two of these buffers
	slow, different := 1+200*rng.Float64(), rng.IntN(2) == 0
	for d := range p.Topology.Devices {
		dev := &p.Topology.Devices[d]
		dev.LinkBytesPerSecond /= slow
		if different {
			dev.FLOPS /= 1 + float64(rng.IntN(2))
			dev.CapacityBytes = 3<<30 + rng.Int64N(3)<<29
			dev.ReservedBytes = 0
		}
	}
}

func checkPipeline(t *testing.T, p planner.Problem, gpus, chunks int) {
	t.Helper()
	sol, err := planner.Solve(t.Context(), p, planner.Settings{})
	seconds, share := math.Inf(1), math.Inf(1)
	devices := [][]int{[]int{0, 1, 2}[:gpus]}
	if !randomproblem.Uniform(p.Topology) {
		devices = exhaustive.Permutations(gpus)
	}
	for _, order := range devices {
		exhaustive.Cuts(len(p.Graph.Units), gpus*chunks, nil, func(cuts []int) {
			m := exhaustive.LoopedMap(&p, cuts, order)
			if m == nil {
				return
			}
			most := randomproblem.LargestShare(&p, m)
			if most > 1 {
				return
			}
			switch got := *devicemap.StepSeconds(p.Costs, p.Topology, m); {
			case got < seconds*(1-1e-9):
				seconds, share = got, most
			case got <= seconds*(1+1e-9):
				share = min(share, most)
			}
		})
	}
	switch {
	case math.IsInf(seconds, 1) && err == nil:
		t.Errorf("%v, but nothing fits", sol.Map)
	case math.IsInf(seconds, 1):
	case err != nil:
		t.Errorf("%v, but a map fits in %v s", err, seconds)
	case !randomproblem.Close(sol.Value, seconds) || sol.Status != planner.Optimal || sol.LowerBound != sol.Value:
		t.Errorf("%v takes %v s (%s, bound %v), the best of all cuts %v", sol.Map, sol.Value, sol.Status, sol.LowerBound, seconds)
	case sol.EvenProved && !randomproblem.Close(sol.LargestShare, share):
		t.Errorf("%v has a share of %v, of all cuts with this step the smallest is %v", sol.Map, sol.LargestShare, share)
	}
}
