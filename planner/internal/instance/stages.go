package instance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// passing lists sets of units that share a stage. A unit that passes ([costmodel.Unit.Passes]) goes
// with the next one, or at the end of the model with the previous one.
func passing(units []costmodel.Unit) [][]int {
	var sets [][]int
	for unit := range len(units) - 1 {
		if units[unit].Passes() {
			sets = append(sets, []int{unit, unit + 1})
		}
	}
	for unit := len(units) - 1; unit > 0 && units[unit].Passes(); unit-- {
		sets = append(sets, []int{unit - 1, unit})
	}
	return sets
}

// wholeEnds are the units before a decoder's blocks, and those behind them.
func wholeEnds(units []modelgraph.Unit) [][]int {
	block := func(unit modelgraph.Unit) bool { return unit.Kind == "decoder-layer" }
	first := slices.IndexFunc(units, block)
	if first < 0 {
		return nil
	}
	sets := [][]int{nil, nil}
	for unit := range units {
		switch {
		case unit < first:
			sets[0] = append(sets[0], unit)
		case !slices.ContainsFunc(units[unit:], block):
			sets[1] = append(sets[1], unit)
		}
	}
	return slices.DeleteFunc(sets, func(set []int) bool { return len(set) < 2 })
}

// checkStages refuses what no pipeline runs.
func (items *Items) checkStages() error {
	in, schedule, count := items.In, items.In.Schedule(), items.Count()
	if !in.rules().Alone && !slices.ContainsFunc(in.Costs.Units, func(unit costmodel.Unit) bool { return !unit.Passes() }) {
		return &StageError{"strategy", int(schedule.Stages), 0, costmodel.Messagef("no unit of the model has parameters or declared costs, so that none can be a stage (device-map takes any)")}
	}
	if int(schedule.Stages*schedule.Chunks) > count {
		return fewUnits(in, schedule, count)
	}
	if schedule.Stages == 1 && schedule.Kind.Vee() {
		return &StageError{"schedule", 1, count, costmodel.Messagef("a V goes over the GPUs and back, and there is 1: 2 work, or another schedule")}
	}
	if schedule.Stages == 1 && schedule.Chunks > 1 {
		return &StageError{"schedule", 1, count, costmodel.Messagef("interleaved runs go round the GPUs, and there is 1: 2 work, or another schedule")}
	}
	mode := in.Costs.Workload.Mode
	if mode == costmodel.Load || mode == costmodel.Infer && !schedule.Kind.Chunked() {
		return nil // forward only: any number of micro-batches with one run per GPU
	}
	err := schedule.Check()
	if field := (*costmodel.FieldError)(nil); err == nil || errors.As(err, &field) {
		return err
	}
	return &StageError{"micro_batches", int(schedule.Stages), count, refusedParts(err, schedule, in.Costs.Workload.Batch)}
}

// fewUnits returns the error of [tooFew] with what else works for the workload, and the groups of
// units that the graph keeps in one stage.
func fewUnits(in *Instance, schedule costmodel.Schedule, count int) *StageError {
	few := tooFew(schedule, count)
	if replicas, stages := spared(schedule, count); replicas > 0 && in.Costs.Workload.PP != 0 {
		few.Msg = costmodel.Messagef("%v; or give %v %v", few.Msg, costmodel.Set("dp", in.Costs.Workload.DP.Count()*replicas), costmodel.Set("pp", stages))
	}
	for _, group := range in.Graph.Staged {
		few.Msg = costmodel.Messagef("%v; %s", few.Msg, group.Why)
	}
	return few
}

// spared returns the fewest replicas that leave no more stages than units, and these stages: 0 if
// no number of them leaves two.
func spared(schedule costmodel.Schedule, count int) (replicas, stages int64) {
	for stages = min(schedule.Stages-1, int64(count)/schedule.Chunks); stages > 1; stages-- {
		if schedule.Stages%stages == 0 {
			return schedule.Stages / stages, stages
		}
	}
	return 0, 0
}

// tooFew returns the error of a model with fewer units than stages. It says which settings work.
func tooFew(schedule costmodel.Schedule, count int) *StageError {
	gpus, runs := count/int(schedule.Chunks), count/int(schedule.Stages)
	if schedule.Chunks == 1 {
		return &StageError{"gpus", int(schedule.Stages), count, costmodel.Messagef("a pipeline with more stages than units: %d stages and %d units that can be one; at most %d GPUs work", schedule.Stages, count, gpus)}
	}
	var works []string
	if runs > 1 {
		works = append(works, fmt.Sprintf("%d runs a GPU", runs))
	}
	if gpus > 1 {
		works = append(works, fmt.Sprintf("%d GPUs", gpus))
	}
	if runs > 0 {
		works = append(works, "another schedule")
	}
	out := &StageError{"virtual_stages", int(schedule.Stages), count, costmodel.Messagef("a pipeline with more stages than units: %d GPUs × %d runs are %d stages, and %d units can be one",
		schedule.Stages, schedule.Chunks, schedule.Stages*schedule.Chunks, count)}
	if len(works) > 0 {
		out.Msg = costmodel.Messagef("%v; what works: %s", out.Msg, strings.Join(works, ", or "))
	}
	return out
}

// refusedParts returns the error of a number of micro-batches. If the nearest numbers that the
// schedule allows do not divide the batch, it names those that do.
func refusedParts(err error, schedule costmodel.Schedule, batch int64) costmodel.Message {
	divides := func(step int64) bool {
		near := schedule
		for near.MicroBatches > 0 && near.Check() != nil {
			near.MicroBatches += step
		}
		return near.MicroBatches == 0 || batch%near.MicroBatches == 0
	}
	if divides(1) && divides(-1) {
		return costmodel.Messagef("%v", err)
	}
	return costmodel.Messagef("%v, and a divisor of the batch of %d (%s)", err, batch, schedule.Parts(batch))
}

// pinEnds pins the chain's ends to the first and the last device. A pipeline's stages are in device
// order, and none is empty.
func (items *Items) pinEnds() error {
	last := len(items.In.Topology.Devices) - 1
	for item, device := range map[int]int{0: 0, items.Count() - 1: last} {
		if old := items.Pins[item]; old >= 0 && old != device {
			unit := items.Units(item)[0]
			for _, unitIndex := range items.Units(item) {
				if _, ok := items.pinOf[unitIndex]; ok {
					unit = unitIndex
				}
			}
			name := items.In.Graph.Units[unit].Name
			return &ConstraintError{Field: "pin", Pattern: items.pinOf[unit].Pattern, Msg: fmt.Sprintf("%q cannot be on device %d: a pipeline's stages are in device order, so that it is on device %d", name, old, device)}
		}
		items.Pins[item] = device
	}
	return nil
}

// noStage returns the error for pins that leave a stage without a unit.
func (items *Items) noStage(empty *chain.EmptyError) error {
	stages := len(items.In.Topology.Devices)
	return &StageError{"pin", stages, items.Count(), costmodel.Messagef("no map keeps the pins and has a unit on each of the %d stages: none is left for device %d", stages, empty.Device)}
}
