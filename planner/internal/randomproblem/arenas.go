package randomproblem

import (
	"math/rand/v2"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Arenas changes a problem to one of devmap's own engine. Units get arena regions of random sizes;
// some are in place, recomputed or passing, and ties follow the graph. The number of micro-batches
// is random, and capacities are around an equal share of the memory.
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
		dev.CapacityBytes = 4000 + dev.ReservedBytes + dev.ContextBytes + (table.Workspaces+1)*dev.WorkspaceBytes + all/count/2 + rng.Int64N(2*all/count+1)
		if same {
			*dev = problem.Topology.Devices[0]
		}
	}
}

func arenaUnits(rng *rand.Rand, problem *planner.Problem) []costmodel.Unit {
	units := make([]costmodel.Unit, len(problem.Costs.Units))
	sampler := arenaSampler{
		rng: rng, mode: problem.Costs.Workload.Mode,
		weights: Pick[int64](rng, 4, 40), saved: Pick[int64](rng, 4, 40), message: Pick[int64](rng, 2, 30),
	}
	first := true
	for i := range units {
		unit := &units[i]
		*unit = problem.Costs.Units[i]
		unit.Layers, unit.Recompute, unit.Products = nil, false, rng.IntN(2) == 0
		unit.CheckpointedOutput, unit.AutocastCopies, unit.StatePadding = 0, 0, 0
		if sampler.mode != costmodel.Load && rng.IntN(8) == 0 && i < len(units)-1 {
			unit.Regions, unit.Work = costmodel.Regions{Passes: true}, costmodel.Work{Output: unit.Work.Output}
			continue
		}
		unit.Regions = sampler.regions(first)
		first = false
	}
	if last := &units[len(units)-1].Regions; sampler.mode != costmodel.Load {
		last.Output, last.Token, last.Result = 0, 0, sampler.size(9)
	}
	for _, tied := range problem.Graph.TiedUnits() {
		for _, unit := range tied[1:] {
			if !units[tied[0]].Regions.Passes && !units[unit].Regions.Passes {
				units[unit].Regions.Tied = []costmodel.Tie{sampler.tie(tied[0])}
			}
		}
	}
	return units
}

// arenaSampler samples the regions of units. Its fields are the most blocks of weights, of saved
// tensors and of a message.
type arenaSampler struct {
	rng                     *rand.Rand
	mode                    costmodel.Mode
	weights, saved, message int64
}

func (sampler *arenaSampler) size(most int64) int64 {
	return costmodel.RegionAlign * sampler.rng.Int64N(most)
}

// regions returns the regions of a unit. The model's first unit keeps no input.
func (sampler *arenaSampler) regions(first bool) costmodel.Regions {
	regions := costmodel.Regions{Weights: 512 + sampler.size(sampler.weights), Output: costmodel.RegionAlign + sampler.size(sampler.message), Token: costmodel.RegionAlign}
	switch sampler.mode {
	case costmodel.Load, costmodel.Serve:
		return regions
	case costmodel.Infer:
		regions.Cache, regions.Decode, regions.Forward = sampler.size(sampler.saved), sampler.size(sampler.saved), sampler.size(sampler.saved)
		return regions
	case costmodel.Train:
	}
	regions.Grads, regions.Master, regions.State, regions.Tensors = 512+sampler.size(sampler.weights), 512, 1024+sampler.size(sampler.weights), sampler.rng.Int64N(9)
	regions.Saved, regions.Forward, regions.Backward = sampler.size(sampler.saved), sampler.size(sampler.saved), sampler.size(sampler.saved)
	if !first && sampler.rng.IntN(3) > 0 {
		regions.Input = sampler.size(sampler.message)
	}
	if sampler.rng.IntN(3) == 0 {
		regions.Remade, regions.Saved = regions.Saved, 0
		regions.Forward, regions.Backward = regions.Forward+regions.Remade, regions.Backward+regions.Remade
	}
	return regions
}

// tie returns a tie to a weight of another unit.
func (sampler *arenaSampler) tie(owner int) costmodel.Tie {
	tie := costmodel.Tie{Owner: owner, Tensor: "shared", Weights: 256}
	if sampler.mode == costmodel.Train {
		tie.Grads, tie.Master, tie.State = 512, 256, 512
	}
	return tie
}
