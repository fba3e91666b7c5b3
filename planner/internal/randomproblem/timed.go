package randomproblem

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
)

// Timed returns a random problem with random times. Units have integer FLOPs, so that ties are
// common. Devices and links differ half of the time.
func Timed(t *testing.T, rng *rand.Rand) planner.Problem {
	t.Helper()
	for {
		problem := Problem(t, rng)
		if problem.Costs.Workload.Mode == costmodel.Load {
			continue
		}
		if rng.IntN(2) == 0 {
			workload, err := estimate.Resolve(problem.Graph, costmodel.Workload{Mode: costmodel.Infer, Batch: 1, Seq: 1, Precision: costmodel.BF16True})
			if err != nil {
				t.Fatal(err)
			}
			if problem.Costs, err = estimate.Table(problem.Graph, workload); err != nil {
				t.Fatal(err)
			}
		}
		problem.Costs.OutputBytes = rng.Int64N(2) * rng.Int64N(60)
		for unit := range problem.Costs.Units {
			work := &problem.Costs.Units[unit].Work
			work.Forward.Products, work.Backward.Products = float64(rng.IntN(6)), float64(rng.IntN(9))
			work.Output = rng.Int64N(4)
			if problem.Costs.Workload.Mode == costmodel.Train {
				work.Update = float64(rng.IntN(5))
			}
		}
		topo := problem.Topology
		for device := range topo.Devices {
			dev := &topo.Devices[device]
			dev.FLOPS, dev.BytesPerSecond, dev.LinkBytesPerSecond = 1, 1, 1
			if *dev != topo.Devices[0] {
				dev.FLOPS, dev.BytesPerSecond, dev.LinkBytesPerSecond = float64(1+rng.IntN(3)), float64(1+rng.IntN(2)), 1/float64(1+rng.IntN(2))
			}
		}
		if k := len(topo.Devices); k > 1 && rng.IntN(4) == 0 {
			for a := range k {
				for b := range a {
					if rng.IntN(4) > 0 {
						topo.Links = append(topo.Links, costmodel.Link{From: b, To: a, BytesPerSecond: float64(1 + rng.IntN(2)), LatencySeconds: float64(rng.IntN(2))})
					}
				}
			}
		}
		return problem
	}
}

// Hosted adds random issue times of the host, and several micro-batches or tokens.
func Hosted(rng *rand.Rand, problem *planner.Problem) {
	workload := &problem.Costs.Workload
	workload.MicroBatches = 1 + rng.Int64N(3)
	for device := range problem.Topology.Devices {
		dev := &problem.Topology.Devices[device]
		dev.IssueSeconds, dev.BackwardIssueSeconds = float64(rng.IntN(4))/2, float64(rng.IntN(3))/2
	}
	if workload.Mode == costmodel.Infer {
		workload.Seq, workload.NewTokens = 4, rng.Int64N(4)
	}
	for unit := range problem.Costs.Units {
		work := &problem.Costs.Units[unit].Work
		work.Forward.Kernels, work.Backward.Kernels = float64(rng.IntN(4)), float64(rng.IntN(6))
		work.Token = costmodel.Pass{Products: float64(rng.IntN(3)), Kernels: float64(rng.IntN(3))}
	}
}

// Uniform reports that all orders of the devices are equivalent.
func Uniform(topo *costmodel.Topology) bool {
	for a := range topo.Devices {
		if topo.Devices[a] != topo.Devices[0] {
			return false
		}
		for b := range topo.Devices {
			if a != b && (topo.Linked(a, b) != topo.Linked(0, 1) || topo.SendSeconds(a, b, 0) != topo.SendSeconds(0, 1, 0) || topo.SendSeconds(a, b, 1) != topo.SendSeconds(0, 1, 1)) {
				return false
			}
		}
	}
	return true
}

// Close reports sums that are equal up to rounding.
func Close(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1e-300, math.Abs(a)) }

// TimedChain returns a chain of units of one second each, on devices with different memory.
func TimedChain(t *testing.T, units, devices int) planner.Problem {
	t.Helper()
	sizes, budgets := make([]int64, units), make([]int64, devices)
	for i := range sizes {
		sizes[i] = 100
	}
	for device := range budgets {
		budgets[device] = int64(250 + device)
	}
	problem := Chain(t, sizes, budgets...)
	problem.Costs.Workload.Mode = costmodel.Infer
	for unit := range problem.Costs.Units {
		problem.Costs.Units[unit].Work.Forward.Products, problem.Costs.Units[unit].Work.Output = 1, 1
	}
	for device := range problem.Topology.Devices {
		problem.Topology.Devices[device].FLOPS, problem.Topology.Devices[device].LinkBytesPerSecond = 1, 1
	}
	problem.Objective = planner.Time
	return problem
}
