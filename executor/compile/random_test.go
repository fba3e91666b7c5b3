package compile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// randomPlan is a model of made-up units on devices.
type randomPlan struct {
	graph     *modelgraph.Graph
	table     *costmodel.Table
	topology  *costmodel.Topology
	placement devicemap.Map
}

// newRandomPlan makes a model of a few units, at times with recompute, at times with tied weights.
// The first embeds and the last is a head. Between them are blocks, units that add to the stream in
// place, and units that only pass it.
func newRandomPlan(rng *rand.Rand) *randomPlan {
	size := func(most int64) int64 { return costmodel.RegionAlign * rng.Int64N(most+1) }
	count, devices := 2+rng.IntN(7), 1+rng.IntN(4)
	table := &costmodel.Table{Workspaces: rng.Int64N(3)}
	work := &table.Workload
	work.Runtime, work.Precision = costmodel.Devmap, costmodel.BF16True
	work.Mode = []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)]
	work.Strategy = []costmodel.Strategy{costmodel.DeviceMap, costmodel.Pipeline}[rng.IntN(2)]
	work.MicroBatches = 1 + rng.Int64N(9)*rng.Int64N(2)
	work.Batch, work.Seq = work.MicroBatches*(1+rng.Int64N(3)), 16
	if work.Strategy == costmodel.Pipeline {
		kinds := costmodel.ScheduleKinds()
		if count < 2*devices || devices == 1 {
			kinds = kinds[:4] // no V
		}
		work.Schedule = kinds[rng.IntN(len(kinds))]
	}
	train := work.Mode == costmodel.Train
	if work.Mode == costmodel.Infer {
		work.NewTokens = rng.Int64N(4)
	}
	message := costmodel.RegionAlign * (1 + rng.Int64N(4))
	graph := &modelgraph.Graph{Name: "drawn"}
	tied := rng.IntN(2) == 0
	for index := range count {
		unit := costmodel.Unit{Name: fmt.Sprintf("unit.%d", index), Products: rng.IntN(2) == 0}
		regions := &unit.Regions
		regions.Output, regions.Token = message, costmodel.RegionAlign
		regions.Passes = index > 0 && index < count-1 && rng.IntN(4) == 0
		if !regions.Passes {
			regions.Weights, regions.Forward = size(5), size(9)
			unit.Work.Forward.Products = float64(1+rng.IntN(9)) * 1e9
			if train {
				regions.Grads, regions.Master, regions.State = regions.Weights, size(2), 2*regions.Weights
				regions.Saved, regions.Backward = size(9), size(9)
				regions.Tensors = 1 + rng.Int64N(3)
				unit.Work.Backward.Products = float64(1+rng.IntN(9)) * 1e9
				if index > 0 && rng.IntN(4) > 0 {
					regions.Input = message
				}
				if index > 0 && rng.IntN(4) == 0 {
					regions.Remade, regions.Saved = regions.Saved, 0
					regions.Forward, regions.Backward = regions.Forward+regions.Remade, regions.Backward+regions.Remade
				}
				if work.Schedule.Split() && rng.IntN(4) > 0 && regions.Grads > 0 {
					regions.Late, regions.Pending, regions.Learn, regions.Learns = size(4), size(4), size(9), true
					regions.KeepsInput = regions.Input > 0 && rng.IntN(2) == 0
					unit.Work.Learn.Products = float64(1+rng.IntN(9)) * 1e9
				}
			} else if work.Mode == costmodel.Infer {
				regions.Cache, regions.Decode = size(5), size(5)
			}
		}
		if index == 0 {
			regions.Feed = costmodel.RegionAlign
		}
		if index == count-1 {
			regions.Result, regions.Output, regions.Token = size(3)+costmodel.RegionAlign, 0, 0
			if owner := &table.Units; tied && index > 0 {
				first := &(*owner)[0].Regions
				regions.Weights, regions.Master, regions.State, regions.Grads = 0, 0, 0, first.Grads
				regions.Tied = []costmodel.Tie{{Owner: 0, Tensor: "unit.0.weight", Weights: first.Weights, Master: first.Master, State: first.State, Grads: first.Grads}}
			}
		}
		table.Units = append(table.Units, unit)
		graph.Units = append(graph.Units, modelgraph.Unit{Name: unit.Name, First: index, End: index + 1})
	}
	topology := &costmodel.Topology{}
	for range devices {
		topology.Devices = append(topology.Devices, costmodel.Device{CapacityBytes: 1 << 40, WorkspaceBytes: 1000, FLOPS: 1e12, Rates: costmodel.Rates{LinkBytesPerSecond: 1e9}})
	}
	if train && work.Strategy == costmodel.Pipeline && rng.IntN(2) == 0 {
		work.OffloadActivations = costmodel.OffloadAll
		sets := 2 + rng.Int64N(2)
		for index := range table.Units {
			if regions := &table.Units[index].Regions; regions.Input > 0 && rng.IntN(3) > 0 {
				regions.Moved = sets
			}
		}
		for index := range topology.Devices {
			on := &topology.Devices[index]
			on.Own.DeviceToHostBytesPerSecond, on.Own.HostToDeviceBytesPerSecond = 2e5*float64(1+rng.IntN(45)), 2e5*float64(1+rng.IntN(45))
		}
	}
	placement := place(rng, work.Strategy, count, devices, work.Schedule)
	if tied && work.Strategy == costmodel.DeviceMap {
		placement[count-1] = placement[0] // as device maps have it
	}
	return &randomPlan{graph, table, topology, placement}
}

// place is a random placement: under a device map on any devices, else in runs round
// the devices.
func place(rng *rand.Rand, strategy costmodel.Strategy, units, devices int, kind costmodel.ScheduleKind) devicemap.Map {
	out := make(devicemap.Map, units)
	if strategy == costmodel.DeviceMap {
		for index := range out {
			out[index] = devicemap.Device(rng.IntN(devices))
			if index > 0 && rng.IntN(2) == 0 {
				out[index] = out[index-1]
			}
		}
		return out
	}
	at, order := 0, rng.Perm(devices)
	if kind.Vee() { // runs of one unit or more, and of two on the last device
		schedule, left := costmodel.Schedule{Kind: kind, Stages: int64(devices)}, units-2*devices
		for unit, run := 0, 0; run < 2*devices-1; run++ {
			length := 1 + rng.IntN(left+1)
			left -= length - 1
			if run == devices-1 {
				length++
			}
			if run == 2*devices-2 {
				length = units - unit
			}
			for range length {
				out[unit] = devicemap.Device(order[schedule.RunRank(int64(run))])
				unit++
			}
		}
		return out
	}
	for index := range out {
		out[index] = devicemap.Device(order[at%devices])
		if rng.IntN(2) == 0 && (at < devices-1 || kind == costmodel.Interleaved) {
			at++
		}
	}
	return out
}

func (plan *randomPlan) compile(t *testing.T) *program.Program {
	t.Helper()
	_, out := plan.compiled(t)
	return out
}

// compiled is the program with the compiler that made it.
func (plan *randomPlan) compiled(t *testing.T) (*compiler, *program.Program) {
	t.Helper()
	compiler := fixtures.Must(newCompiler(plan.graph, plan.table, plan.topology, plan.placement))(t)
	out := fixtures.Must(compiler.program(nil))(t)
	return compiler, out
}

func TestRandomPlans(t *testing.T) {
	for seed := range uint64(3000) {
		plan := newRandomPlan(rand.New(rand.NewPCG(seed, 1)))
		out := plan.compile(t)
		if err := out.Check().Err(); err != nil {
			t.Fatalf("seed %d, %+v on %v: %v", seed, plan.table.Workload, plan.placement, err)
		}
		if _, err := simulate.Run(out); err != nil {
			t.Fatalf("seed %d, %+v on %v: %v", seed, plan.table.Workload, plan.placement, err)
		}
	}
}
