package devicemap

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// place finds each unit's device. It reports units with no device or with more than one.
func (check *checker) place() {
	check.placement = make(Map, len(check.graph.Units))
	for unit := range check.graph.Units {
		check.placement[unit] = check.unit(unit)
	}
}

func (check *checker) unit(unitIndex int) Device {
	unit := &check.graph.Units[unitIndex]
	var on []Device
	var without []string
	needed := false
	each := func(path string, required bool) {
		if device, ok := check.deviceOf(path); ok {
			on = append(on, device)
			return
		}
		without = append(without, path)
		needed = needed || required
	}
	for i := unit.First; i < unit.End; i++ {
		layer := &check.graph.Layers[i]
		for j := range layer.Params {
			each(modelgraph.FullName(layer.Name, layer.Params[j].Name), true)
		}
		for j := range layer.Buffers {
			each(modelgraph.FullName(layer.Name, layer.Buffers[j].Name), layer.Buffers[j].Persistent)
		}
		if len(layer.Params)+len(layer.Buffers) == 0 {
			each(layer.Name, layer.Declared != nil)
		}
	}
	slices.Sort(on)
	on = slices.Compact(on)
	switch {
	case len(without) > 0 && needed:
		check.fault(noDevice, check.missing(unit, without, len(on) > 0), "no key of the map covers it")
		return Nowhere
	case slices.Contains(on, Nowhere): // its key has a fault already
		return Nowhere
	case len(on) > 1:
		check.fault(splitUnit, unit.Name, "it is split over devices %s; its class must stay on one device", names(on))
		return Nowhere
	case len(on) == 0: // it has only buffers, and runs on the device of its input
		check.warnings = append(check.warnings, fmt.Sprintf("%s holds only buffers and has no device: it runs on device 0", unit.Name))
		return 0
	}
	return on[0]
}

// missing names the part without a device: the parameter if the rest of the unit has one, else the
// unit.
func (check *checker) missing(unit *modelgraph.Unit, without []string, partly bool) string {
	if partly || len(unit.Keys) > 1 {
		return without[0]
	}
	return unit.Keys[0]
}

// tiers reports units on CPU or disk if no engine runs them from there: one fault for all units of
// a tier. A map without a GPU runs on the CPU (accelerate/big_modeling.py, dispatch_model:
// main_device).
func (check *checker) tiers(workload *costmodel.Workload) {
	below := 0
	for _, tier := range []Device{CPU, Disk} {
		first, count := slices.Index(check.placement, tier), 0
		if first < 0 {
			continue
		}
		for _, device := range check.placement {
			if device == tier {
				count++
			}
		}
		below += count
		name, which := check.graph.Units[first].Name, "it is"
		if count > 1 {
			which = fmt.Sprintf("it and %d more are", count-1)
		}
		switch {
		case costmodel.StageRulesOf(workload.Runtime).Arena:
			check.fault(unknownDevice, name, "%s on the %v: %s runs every unit on a GPU (with %v units may leave)", which, tier, workload.Runtime, costmodel.Set("runtime", costmodel.DeviceMap.Traits().Runtimes[0]))
		case workload.Mode == costmodel.Train:
			check.fault(offloadInTraining, name, "%s on the %v: Accelerate's hooks drop offloaded weights after forward, and backward needs them (%v works)", which, tier, costmodel.Set("mode", costmodel.Infer))
		case workload.Strategy.Traits().Staged:
			check.fault(unknownDevice, name, "%s on the %v: a stage of a pipeline runs on a GPU", which, tier)
		}
	}
	if below > 0 && below == len(check.placement) {
		check.warnings = append(check.warnings, "no module is on a GPU: Accelerate runs the whole model on the CPU and uses no GPU; give a GPU at least one module")
	}
}

// ties reports tied groups and joined units on more than one device.
func (check *checker) ties(workload *costmodel.Workload) {
	for _, units := range check.graph.TiedUnits() {
		var on []Device
		var where []string
		for _, unit := range units {
			if check.placement[unit] == Nowhere {
				continue
			}
			on = append(on, check.placement[unit])
			where = append(where, fmt.Sprintf("%q on %v", check.graph.Units[unit].Name, check.placement[unit]))
		}
		slices.Sort(on)
		if len(slices.Compact(on)) > 1 {
			check.fault(tiesApart, check.graph.Units[units[0]].Name, apartMessage(check.graph, units, workload.Mode), strings.Join(where, ", "))
		}
	}
}

// apartMessage says why the units must share a device; %s is the list of their devices.
func apartMessage(graph *modelgraph.Graph, units []int, mode costmodel.Mode) string {
	if slices.ContainsFunc(units, func(unit int) bool { return graph.Units[unit].Joined }) {
		return "the model's forward joins the results of these units and moves none of them, so one device must hold them all: %s"
	}
	if mode != costmodel.Train {
		return "units that share a parameter are apart: %s; the copies would take twice the memory"
	}
	return "units that share a parameter are apart: %s; the copies would train apart and take twice the memory"
}

func names(ds []Device) string {
	words := make([]string, len(ds))
	for i, device := range ds {
		words[i] = device.String()
	}
	return strings.Join(words, ", ")
}

// pipeline reports maps that the schedule cannot run. Without interleaving each device has one
// stage; with it, chunk c is on device c mod p, or in a V. Source: torch 2.11,
// distributed/pipelining/schedules.py (PipelineScheduleSingle, generate_stage_to_rank_mapping).
func (check *checker) pipeline(graph *modelgraph.Graph, pipe *pipeline, train bool) {
	if len(pipe.stages) == 0 { // no unit has a device; other faults report it
		return
	}
	for stage := range pipe.stages {
		first := pipe.of[pipe.device[stage]][0]
		module := graph.Units[pipe.opens[stage]].Name
		rank, _ := pipe.schedule.Place(int64(stage))
		switch {
		case pipe.schedule.Kind.Vee() && len(pipe.stages) != 2*int(pipe.schedule.Stages):
			check.fault(splitUnit, module, "%s has two stages on each of %d devices, and the map has %d: an odd number, or a device with another number", pipe.schedule.Kind, pipe.schedule.Stages, len(pipe.stages))
			return
		case pipe.schedule.Kind.Vee() && pipe.device[stage] != pipe.device[rank]:
			check.fault(splitUnit, module, "stage %d is on device %d; the stages of %s go down the devices and back, so that it belongs on device %d", stage, pipe.gpu(pipe.device[stage]), pipe.schedule.Kind, pipe.gpu(pipe.device[rank]))
		case !pipe.schedule.Kind.Chunked() && first != stage:
			check.fault(splitUnit, module, "it begins a second run on device %d; %s takes one stage a device (%v takes several)", pipe.gpu(pipe.device[stage]), pipe.schedule.Kind, costmodel.Set("schedule", costmodel.Interleaved))
		case pipe.schedule.Kind.Loops() && pipe.device[stage] != pipe.device[stage%int(pipe.schedule.Stages)]:
			check.fault(splitUnit, module, "stage %d is on device %d; interleaved stages go round the devices, so that it belongs on device %d", stage, pipe.gpu(pipe.device[stage]), pipe.gpu(pipe.device[stage%int(pipe.schedule.Stages)]))
		}
	}
	var unknown *costmodel.FieldError
	switch err := pipe.schedule.Check(); {
	case errors.As(err, &unknown):
		check.fault(unknownEngine, "", "%v", unknown)
	case err != nil && (train || pipe.schedule.Kind.Chunked()):
		check.warnings = append(check.warnings, fmt.Sprintf("the engine refuses this: %v", err))
	}
}
