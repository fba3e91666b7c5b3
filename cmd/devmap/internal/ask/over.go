package ask

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Setting returns workload and devices. With a plan it starts from the plan, and given flags
// override it. Without one it uses the flags, with as many devices as the map names.
func (request *Request) Setting(plan *devicemap.Plan, flat devicemap.Flat) (costmodel.Workload, *costmodel.Topology, error) {
	workload, err := request.Workload()
	if err != nil {
		return workload, nil, err
	}
	count := 1
	for _, entry := range flat {
		count = max(count, min(int(entry.Device)+1, costmodel.MaxDevices))
	}
	if plan != nil {
		workload = request.over(plan.Workload)
		if request.Given("preset") { // the plan has its sizes and types
			ofPlan := func(field string) bool {
				return field != "loss_only" && field != "built_on" || request.Given(strings.ReplaceAll(field, "_", "-"))
			}
			if request.presetNotes, err = applyPreset(&workload, ofPlan); err != nil {
				return workload, nil, err
			}
		}
		count = len(plan.Topology.Devices)
	}
	if plan == nil || request.Given("gpus", "gpu", "topology") {
		topo, err := request.devices(workload.Mode, count)
		return workload, topo, err
	}
	topo := plan.Topology
	topo.Devices = slices.Clone(topo.Devices)
	if err := request.setAside(&topo); err != nil {
		return workload, nil, err
	}
	if err := topo.Check(); err != nil {
		return workload, nil, gpuFault(err)
	}
	return workload, &topo, nil
}

// over returns a plan's workload with the given flags. Fields that depend on such a flag are open
// again, unless they were given too.
func (request *Request) over(planned costmodel.Workload) costmodel.Workload {
	workload := planned
	usual := flagNamed("preset").field
	if usual.Implied(&planned) && request.Given("mode", "strategy", "runtime", "recompute") {
		workload.Preset = string(costmodel.Auto) // the default of the new workload
		workload.LossOnly = workload.LossOnly && planned.Preset == ""
	}
	var none costmodel.Workload
	for i := range flags {
		if !request.Given(flags[i].name) {
			continue
		}
		for _, name := range flags[i].reopens {
			flagNamed(name).field.Copy(&workload, &none)
		}
	}
	for i := range flags {
		if f := &flags[i]; f.field != nil && request.Given(f.name) {
			f.field.Copy(&workload, &request.work)
		}
	}
	if request.lengths != "" {
		workload.Lengths = request.work.Lengths
	}
	switch {
	case request.work.DeepSpeed != nil:
		workload.DeepSpeed = request.work.DeepSpeed
	case workload.Strategy != planned.Strategy:
		workload.DeepSpeed = nil // it belonged to another strategy
	}
	return workload
}

// Defaults returns the settings of an answer that the user did not give, as flags. It leaves out
// settings of a configuration file.
func Defaults(request *Request, graph *modelgraph.Graph, resolved *costmodel.Workload) []string {
	names := []string{"mode", "gpu"}
	if resolved.Mode != costmodel.Load {
		names = append(names, "batch")
		if estimate.CheckLengths(graph, true, false) == nil {
			names = append(names, "seq")
		}
	}
	names = append(names, "strategy", "precision")
	if resolved.Mode == costmodel.Train {
		names = append(names, "optimizer", "preset")
	}
	values := map[string]string{"gpu": request.gpu}
	for _, name := range names {
		if name != "gpu" {
			values[name] = valueOf(flagNamed(name).field.Ref(resolved))
		}
	}
	configured := []string{"batch", "strategy", "precision", "optimizer"}
	return leftOpen(request, names, values, func(name string) bool {
		asStored := name == "precision" && StoredAs(graph, resolved) == "F64" // the flag would convert the weights
		return asStored || name == "mode" && request.Implied != "" || request.work.DeepSpeed != nil && slices.Contains(configured, name)
	})
}

// StoredAs returns the type of most weights if no precision has its name: float64, or an 8-bit
// float. Otherwise it is empty.
func StoredAs(graph *modelgraph.Graph, resolved *costmodel.Workload) string {
	size, most := map[string]int64{}, ""
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			tensor := &graph.Layers[i].Params[j]
			name := tensor.DType.String()
			if size[name] += tensor.Bytes; size[name] > size[most] {
				most = name
			}
		}
	}
	if most == "F64" && resolved.StoredTypes || strings.HasPrefix(most, "F8") && !resolved.Dequantized {
		return most
	}
	return ""
}

// DiffusionDefaults is [Defaults] for a diffusion pipeline.
func DiffusionDefaults(request *Request, work *phases.Workload) []string {
	return leftOpen(request, []string{"gpu", "batch", "height", "width", "frames", "steps"}, map[string]string{
		"gpu": request.gpu, "batch": fmt.Sprint(work.Batch), "height": fmt.Sprint(work.Height), "width": fmt.Sprint(work.Width),
		"frames": fmt.Sprint(work.Frames), "steps": fmt.Sprint(work.Steps),
	}, func(name string) bool {
		return name == "frames" && work.Frames == 1 || work.Train != nil && (name == "steps" || name == "batch") // the preset's note lists them
	})
}

// leftOpen returns the flags among names that were not given, with their values.
func leftOpen(request *Request, names []string, values map[string]string, except func(name string) bool) []string {
	var words []string
	for _, name := range names {
		ofFile := name == "gpu" && (request.topology != "" || request.measures())
		open := !request.Given(name) || name == "preset" && request.work.Preset == string(costmodel.Auto)
		if open && !ofFile && !except(name) && values[name] != "" {
			words = append(words, Say(costmodel.Set(name, values[name])))
		}
	}
	return words
}
