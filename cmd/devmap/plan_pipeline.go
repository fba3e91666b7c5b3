package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// pipelineFolder is the folder of a diffusion pipeline that MODEL names; empty
// where it names something else.
func pipelineFolder(arg string) string {
	folder := load.Place(arg, load.Options{})
	if info, err := os.Stat(filepath.Join(folder, "model_index.json")); folder != "" && err == nil && !info.IsDir() {
		return folder
	}
	return ""
}

// pipeline plans a diffusion pipeline: what each GPU holds in each phase.
func (command *planCommand) pipeline(cmd *cobra.Command, arg, folder string) error {
	if command.IsLatency() {
		return out.Usagef("--objective latency: %s is a pipeline of components, whose phases are planned for memory alone", arg)
	}
	if err := unread(cmd, arg); err != nil {
		return err
	}
	opened, err := diffusers.Open(folder)
	if err != nil {
		return err
	}
	if err := only(opened, command.Generation.Component); err != nil {
		return err
	}
	topology, err := command.PipelineDevices(costmodel.Infer)
	if err != nil {
		return err
	}
	asked := generation(command.Request)
	plans, err := phases.Of(opened, asked, smallest(topology), len(topology.Devices))
	if err != nil {
		return out.Usagef("%s: %w", arg, err)
	}
	best := plans[0]
	document := pipelinePlan(opened, arg, best, topology)
	if err := out.Write(cmd, command.Output, func(writer io.Writer) error { return devicemap.WriteJSON(writer, document) }); err != nil {
		return err
	}
	if !command.JSON {
		show.Pipeline(cmd.ErrOrStderr(), opened, plans, document)
	}
	if !fits(document) {
		return &out.Infeasible{Err: errors.New(tooLarge(document)), Helps: smaller(opened, best.Workload, topology)}
	}
	return nil
}

// unread refuses what says how a language model is run: a plan that passed over
// it would be of something else than was asked for.
func unread(cmd *cobra.Command, arg string) error {
	planned := map[string]string{"mode": string(costmodel.Infer), "precision": "bf16-true", "attention": "sdpa"}
	for _, field := range costmodel.Fields() {
		name := strings.ReplaceAll(field.Name, "_", "-")
		flag := cmd.Flags().Lookup(name)
		switch {
		case flag == nil || !flag.Changed || name == "batch" || name == "offload" || flag.Value.String() == planned[name]:
		case name == "dp" || name == "tp":
			return out.Usagef("--%s: stages of several GPUs are a language model's in training, and %s is a pipeline of components (--ulysses, --ring, --pipefusion and --cfg-degree spread it)", name, arg)
		default:
			return out.Usagef("--%s %s: %s is a pipeline of components, which make pictures with what their folder says; without --%s it is planned", name, flag.Value, arg, name)
		}
	}
	return nil
}

// only leaves one component.
func only(pipeline *diffusers.Pipeline, name string) error {
	if name == "" {
		return nil
	}
	index := slices.IndexFunc(pipeline.Components, func(component diffusers.Component) bool { return component.Name == name })
	if index < 0 {
		var names []string
		for i := range pipeline.Components {
			names = append(names, pipeline.Components[i].Name)
		}
		return out.Usagef("--component %s: the pipeline has none of that name (it has %q)", name, names)
	}
	pipeline.Components = pipeline.Components[index : index+1]
	return pipeline.Components[0].Fault
}

// generation is what the flags ask for.
func generation(request *ask.Request) phases.Workload {
	given := request.Generation
	return phases.Workload{
		Height: given.Height, Width: given.Width, Frames: given.Frames, Steps: request.Steps(), Batch: request.Batch(),
		Offload: request.Offloading(), VAETiling: given.VAETiling, VAESlicing: given.VAESlicing,
		CFGDegree: given.CFGDegree, Ulysses: given.Ulysses, Ring: given.Ring, PipeFusion: given.PipeFusion, FullyShardDegree: given.FullyShard,
	}
}

// smallest is the GPU with the least budget, by which all are planned.
func smallest(topology *costmodel.Topology) costmodel.Device {
	return slices.MinFunc(topology.Devices, func(a, b costmodel.Device) int { return cmp.Compare(a.Budget(), b.Budget()) })
}

// pipelinePlan is the plan file: a device's own prediction is that of its
// fullest phase.
func pipelinePlan(pipeline *diffusers.Pipeline, source string, plan *phases.Plan, topology *costmodel.Topology) *devicemap.Plan {
	document := &devicemap.Plan{FormatVersion: "devmap.plan/v1", Topology: *topology, Warnings: append([]string{}, plan.Warnings...)}
	document.Model.Name, document.Model.Source = filepath.Base(pipeline.Folder), source
	for i := range pipeline.Components {
		if graph := pipeline.Components[i].Graph; graph != nil {
			document.Model.Params += graph.ParamCount()
		}
	}
	document.Workload.Mode, document.Workload.Batch, document.Workload.Runtime = costmodel.Infer, plan.Workload.Batch, "diffusers"
	if len(topology.Devices) > 1 {
		document.Workload.Runtime = "xdit"
	}
	document.Pipeline, _ = json.Marshal(struct { // numbers and words
		Class           string `json:"class"`
		phases.Workload `json:",inline"`
		After           any `json:"after"`
	}{pipeline.Class, plan.Workload, plan.After})
	document.Objective.Name, document.Objective.Status = "memory", "feasible"
	document.Devices = make([]devicemap.Prediction, len(topology.Devices))
	document.Phases = slices.Grow(document.Phases, len(plan.Phases))[:len(plan.Phases)]
	for i := range plan.Phases {
		phase := &plan.Phases[i]
		document.Phases[i].Name, document.Phases[i].Component, document.Phases[i].Seconds = phase.Name, phase.Component, phase.Seconds
		for j := range topology.Devices {
			held := predicted(j, &topology.Devices[j], phase)
			document.Phases[i].Devices = append(document.Phases[i].Devices, held)
			if held.Predicted.PeakAllocatedBytes > document.Devices[j].Predicted.PeakAllocatedBytes {
				document.Devices[j] = held
			}
		}
	}
	most, total := int64(0), int64(0)
	for _, device := range document.Devices {
		peak := device.Predicted.PeakAllocatedBytes
		most, total = max(most, peak), total+peak
		document.Objective.Value = max(document.Objective.Value, float64(peak+device.Predicted.OverheadBytes)/float64(device.CapacityBytes-device.ReservedBytes))
	}
	if total > 0 {
		document.Imbalance = float64(most) * float64(len(document.Devices)) / float64(total)
	}
	if plan.Seconds > 0 {
		document.StepSeconds = &plan.Seconds
	}
	return document
}

// predicted is what a device holds in a phase.
func predicted(index int, device *costmodel.Device, phase *phases.Phase) devicemap.Prediction {
	held := phase.Memory[min(index, len(phase.Memory)-1)]
	peak := held.Total()
	slack := [2]int64{int64(device.Slack[0] * float64(peak)), int64(device.Slack[1] * float64(peak))}
	return devicemap.Prediction{
		Device: index, CapacityBytes: device.CapacityBytes, ReservedBytes: device.ReservedBytes,
		HeadroomBytes: device.Budget() - peak - device.ContextBytes,
		Predicted: devicemap.Predicted{
			ParamsBytes: held.Params, ActivationsBytes: held.Activations, KVCacheBytes: held.KVCache, WorkspaceBytes: held.Workspace, CommBuffersBytes: held.CommBuffers,
			PeakAllocatedBytes: peak, OverheadBytes: device.ContextBytes, PeakAt: phase.Name, SlackBytes: slack,
			DeviceUsedBytes: peak + device.ContextBytes + (slack[0]+slack[1])/2,
		},
	}
}

// fits reports that no GPU holds more than its budget.
func fits(document *devicemap.Plan) bool {
	return !slices.ContainsFunc(document.Devices, func(device devicemap.Prediction) bool { return device.HeadroomBytes < 0 })
}

// tooLarge is the fullest GPU's arithmetic.
func tooLarge(document *devicemap.Plan) string {
	worst := slices.MinFunc(document.Devices, func(a, b devicemap.Prediction) int { return int(min(1, max(-1, a.HeadroomBytes-b.HeadroomBytes))) })
	held := &worst.Predicted
	return fmt.Sprintf("nothing fits: GPU %d holds %s in %s (weights %s, activations %s) of %s", worst.Device,
		show.Bytes(held.PeakAllocatedBytes+held.OverheadBytes), held.PeakAt, show.Bytes(held.ParamsBytes), show.Bytes(held.ActivationsBytes), show.Bytes(worst.CapacityBytes-worst.ReservedBytes))
}

// smaller are the smallest changes that fit.
func smaller(pipeline *diffusers.Pipeline, work phases.Workload, topology *costmodel.Topology) []string {
	var helps []string
	budget := topology.Devices[0].Budget() - topology.Devices[0].ContextBytes
	try := func(words string, change func(*phases.Workload)) {
		other := work
		change(&other)
		plans, err := phases.Of(pipeline, other, smallest(topology), len(topology.Devices))
		if err != nil {
			return
		}
		if peak := show.PipelinePeak(plans[0]); peak <= budget {
			helps = append(helps, fmt.Sprintf("  %s: fullest GPU %s, fits", words, show.Bytes(peak)))
		}
	}
	if len(topology.Devices) == 1 {
		try("--vae-tiling", func(work *phases.Workload) { work.VAETiling = true })
		for _, mode := range []string{"model", "group", "sequential"} {
			try("--offload "+mode, func(work *phases.Workload) { work.Offload = mode })
			try("--offload "+mode+" --vae-tiling", func(work *phases.Workload) { work.Offload, work.VAETiling = mode, true })
		}
	} else {
		gpus := int64(len(topology.Devices))
		try(fmt.Sprintf("--fully-shard-degree %d", gpus), func(work *phases.Workload) { work.FullyShardDegree = gpus })
		try(fmt.Sprintf("--fully-shard-degree %d --vae-tiling", gpus), func(work *phases.Workload) { work.FullyShardDegree, work.VAETiling = gpus, true })
	}
	return helps
}
