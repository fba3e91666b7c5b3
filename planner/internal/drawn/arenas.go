package drawn

import (
	"math/rand/v2"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Arenas has devmap's own engine run a problem: units take regions of an arena,
// of any size, some in place, recomputed or passing, tied as the graph says, in
// any number of micro-batches; and capacities are around an even share of it.
func Arenas(rng *rand.Rand, problem *planner.Problem) {
	table := *problem.Costs
	problem.Costs = &table
	workload := &table.Workload
	workload.Runtime = costmodel.Devmap
	if workload.Strategy == "" {
		workload.Strategy = costmodel.DeviceMap
	}
	workload.MicroBatches = Pick[int64](rng, 1, 1, 2, 3, 5)
	workload.Batch, workload.Seq = workload.MicroBatches*(1+rng.Int64N(3)), 4
	if workload.Mode == costmodel.Infer {
		workload.NewTokens = Pick[int64](rng, 0, 3)
	}
	table.OutputBytes, table.LastGradients, table.Rotary, table.Buckets = 0, false, 0, 0
	table.Workspaces, table.Additive = 1+rng.Int64N(2), workload.Mode == costmodel.Load
	table.Units = arenaUnits(rng, problem)
	var all int64
	for i := range table.Units {
		regions := &table.Units[i].Regions
		all += regions.Weights + regions.Grads + regions.State + regions.Input + regions.Saved + max(regions.Forward, regions.Backward)/2
	}
	count := int64(len(problem.Topology.Devices))
	same := rng.IntN(2) == 0
	for device := range problem.Topology.Devices {
		dev := &problem.Topology.Devices[device]
		dev.CapacityBytes = 4000 + dev.ReservedBytes + all/count/2 + rng.Int64N(2*all/count+1)
		if same {
			*dev = problem.Topology.Devices[0]
		}
	}
}

func arenaUnits(rng *rand.Rand, problem *planner.Problem) []costmodel.Unit {
	units := make([]costmodel.Unit, len(problem.Costs.Units))
	size := func(most int64) int64 { return costmodel.RegionAlign * rng.Int64N(most) }
	weights, saved, message := Pick[int64](rng, 4, 40), Pick[int64](rng, 4, 40), Pick[int64](rng, 2, 30)
	mode := problem.Costs.Workload.Mode
	first := true
	for i := range units {
		unit := &units[i]
		*unit = problem.Costs.Units[i]
		unit.Layers, unit.Recompute, unit.Products = nil, false, rng.IntN(2) == 0
		unit.CheckpointedOutput, unit.AutocastCopies, unit.StatePadding = 0, 0, 0
		regions := &unit.Regions
		regions.Weights, regions.Output, regions.Token = 512+size(weights), costmodel.RegionAlign+size(message), costmodel.RegionAlign
		switch {
		case mode == costmodel.Load:
			continue
		case rng.IntN(8) == 0 && i < len(units)-1:
			*regions = costmodel.Regions{Passes: true}
			continue
		case mode == costmodel.Train:
			regions.Grads, regions.State, regions.Saved, regions.Backward = 512+size(weights), 1024+size(weights), size(saved), size(saved)
			regions.Master, regions.Tensors = 512, rng.Int64N(9)
		default:
			regions.Cache, regions.Decode = size(saved), size(saved)
		}
		regions.Forward = size(saved)
		if mode == costmodel.Train && !first && rng.IntN(3) > 0 {
			regions.Input = size(message)
		}
		if mode == costmodel.Train && rng.IntN(3) == 0 {
			regions.Remade, regions.Saved = regions.Saved, 0
			regions.Forward, regions.Backward = regions.Forward+regions.Remade, regions.Backward+regions.Remade
		}
		first = false
	}
	if last := &units[len(units)-1].Regions; mode != costmodel.Load && !last.Passes {
		last.Output, last.Token, last.Result = 0, 0, size(9)
	}
	for _, tied := range problem.Graph.TiedUnits() {
		for _, unit := range tied[1:] {
			tie := costmodel.Tie{Owner: tied[0], Tensor: "shared", Weights: 256}
			if mode == costmodel.Train {
				tie.Grads, tie.Master, tie.State = 512, 256, 512
			}
			if !units[tied[0]].Regions.Passes && !units[unit].Regions.Passes {
				units[unit].Regions.Tied = []costmodel.Tie{tie}
			}
		}
	}
	return units
}
