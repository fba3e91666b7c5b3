package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/torchcsv"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/executor/simulate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// compiled is a plan's program with the predictions of every device and of a step (nil if none
// runs). For a plan of devmap's engine they are the plan's, even if today's predictions differ. For
// another engine's plan they are the predictions for devmap's engine with its map.
type compiled struct {
	executor.Job
	placed    devicemap.Map
	devices   []devicemap.Prediction
	gpus      map[int32]string // by device: the GPU that was measured
	imbalance float64
	seconds   *float64
	topology  *costmodel.Topology
	shared    []string // notes on devices that share a GPU
}

// programOf compiles the program of a plan, and checks it against the rules. It reads the model
// again, from the plan's place or from model. For a plan of another engine it predicts its map for
// devmap's; the program has both predictions, and both are printed. Argument csv, if given, is a
// file of actions in torch's form that replace the plan's schedule.
func programOf(cmd *cobra.Command, plan *devicemap.Plan, file, model, csv string) (*compiled, error) {
	if err := compilable(plan, file, csv); err != nil {
		return nil, err
	}
	graph, err := plannedModel(plan, file, model)
	if err != nil {
		return nil, err
	}
	workload := plan.Workload
	workload.Runtime, workload.StoredTypes = costmodel.Devmap, false
	if workload.Preset != "" { // devmap's loop has no trainer's preset
		workload.Preset, workload.LossOnly = "", false
	}
	table, err := ask.Costs(graph, workload)
	if err != nil {
		return nil, noProgram(graph, plan, file, err)
	}
	report := devicemap.Check(graph, table, &plan.Topology, plan.DeviceMap, nil)
	if len(report.Faults) > 0 {
		_, err := io.WriteString(cmd.ErrOrStderr(), verdict(out.Cell(file), false, report)) // verdict makes its lines safe
		return nil, errors.Join(err, out.ErrCheck)
	}
	orders, err := ordersOf(cmd, plan, graph, report.Map, csv)
	if err != nil {
		return nil, err
	}
	made, err := compile.Program(graph, table, &plan.Topology, report.Map, orders)
	if errors.Is(err, compile.ErrOrder) {
		return nil, brokenOrder(cmd, csv, err)
	}
	if err != nil {
		return nil, err
	}
	kernels, err := recipe.Of(graph, &table.Workload)
	if err != nil {
		return nil, err
	}
	result := &compiled{
		Job:    executor.Job{Graph: graph, Workload: &table.Workload, Recipe: kernels, Program: made},
		placed: report.Map, topology: &plan.Topology,
		gpus:    measuredOn(&plan.Topology),
		devices: report.Devices, imbalance: report.Imbalance, seconds: devicemap.StepSeconds(table, &plan.Topology, report.Map),
	}
	own := prediction(costmodel.Devmap, result.seconds, report.Devices)
	made.Predictions = []program.Prediction{own}
	if plan.Workload.Runtime == costmodel.Devmap {
		if len(plan.Devices) == len(report.Devices) {
			for i := range plan.Devices {
				if then, now := plan.Devices[i].Predicted.HostBytes, report.Devices[i].Predicted.HostBytes; then != now {
					return nil, &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("devices[%d].predicted.host_bytes", i), Msg: fmt.Sprintf("%d, and the device's activations take %d: plan again", then, now)}
				}
			}
			result.devices, result.imbalance, result.seconds = plan.Devices, plan.Imbalance, plan.StepSeconds
		}
		return result, nil
	}
	other := prediction(plan.Workload.Runtime, plan.StepSeconds, plan.Devices)
	made.Predictions = append(made.Predictions, other)
	show.Warnings(cmd.ErrOrStderr(), []string{fmt.Sprintf("%s targets %s; re-estimated for devmap: %s", file, plan.Workload.Runtime, revised(own, other))})
	return result, nil
}

// noProgram says why a plan's workload has no program. If the plan's own engine does not run the
// workload either, the file is at fault, as in check.
func noProgram(graph *modelgraph.Graph, plan *devicemap.Plan, file string, err error) error {
	_, own := ask.Costs(graph, plan.Workload)
	var field *costmodel.FieldError
	if errors.As(own, &field) {
		return &modelgraph.SyntaxError{File: file, Place: "workload." + field.Field, Msg: field.Msg.Words(ask.Say)}
	}
	return out.Usagef("%s has no program: %w", file, err)
}

// measuredOn returns the GPU on which each device of a topology was measured.
func measuredOn(topology *costmodel.Topology) map[int32]string {
	gpus := make(map[int32]string)
	for i := range topology.Devices {
		if gpu := topology.Devices[i].GPU; gpu != "" {
			gpus[int32(i)] = gpu
		}
	}
	return gpus
}

// compilable refuses plans that devmap's engine does not run.
func compilable(plan *devicemap.Plan, file, csv string) error {
	switch traits := plan.Workload.Strategy.Traits(); {
	case len(plan.Pipeline) > 0:
		return out.Usagef("%s is a plan for a diffusion pipeline, for which devmap's engine has no program: devmap emit %s --for diffusers says how to run it", file, emit.Shell(file))
	case plan.Workload.Mode == costmodel.Serve:
		return out.Usagef("%s is a plan for %s, which serves: devmap emit %s --for %s writes its command", file, plan.Workload.Runtime, emit.Shell(file), plan.Workload.Runtime)
	case traits.Replicated:
		return out.Usagef("%s is a plan for %s, which has no program: plan with --strategy %s or %s", file, plan.Workload.Strategy, costmodel.Pipeline, costmodel.DeviceMap)
	case csv != "" && !traits.Staged:
		return out.Usagef("--schedule-file: %s is a plan for %s, which has no schedule: plan with --strategy %s", file, plan.Workload.Strategy, costmodel.Pipeline)
	}
	for _, entry := range plan.DeviceMap {
		if entry.Device < 0 {
			return out.Usagef("%s: %s is on %v: no program moves weights, plan without --offload", file, out.Cell(entry.Key), entry.Device)
		}
	}
	return nil
}

// maxScheduleBytes limits a file of actions: 10⁶ of them take 10 MB.
const maxScheduleBytes = 256 << 20

// ordersOf reads the actions of every rank; nil without a file.
func ordersOf(cmd *cobra.Command, plan *devicemap.Plan, graph *modelgraph.Graph, placement devicemap.Map, csv string) ([][]order.Action, error) {
	if csv == "" {
		return nil, nil
	}
	data, err := modelgraph.ReadSmall(csv, "a schedule", maxScheduleBytes)
	if err != nil {
		return nil, err
	}
	var devices []devicemap.Device // by rank
	var ranks []int
	for _, stage := range placement.Stages(graph, plan.Workload.Schedule) {
		if !slices.Contains(devices, stage.Device) {
			devices = append(devices, stage.Device)
		}
		ranks = append(ranks, slices.Index(devices, stage.Device))
	}
	orders, err := torchcsv.Read(csv, data, ranks, max(1, plan.Workload.MicroBatches), plan.Workload.Mode == costmodel.Train)
	var faults *torchcsv.FaultsError
	if errors.As(err, &faults) {
		return nil, brokenOrder(cmd, csv, err)
	}
	return orders, err
}

// brokenOrder prints the faults of an order, one per line, and fails like a check.
func brokenOrder(cmd *cobra.Command, csv string, err error) error {
	lines := strings.Split(err.Error(), "\n")
	var faults *torchcsv.FaultsError
	if errors.As(err, &faults) {
		lines = faults.Faults
	}
	failed := out.ErrCheck
	for _, line := range lines {
		failed = errors.Join(failed, out.Say(cmd.ErrOrStderr(), "%s: %s\n", csv, line))
	}
	return failed
}

func prediction(runtime string, seconds *float64, devices []devicemap.Prediction) program.Prediction {
	const ticks = 1e12 // per second
	made := program.Prediction{Runtime: runtime}
	if seconds != nil {
		made.StepTicks = int64(math.Round(*seconds * ticks))
	}
	for i := range devices {
		made.Peaks = append(made.Peaks, devices[i].Predicted.PeakAllocatedBytes)
	}
	return made
}

// revised compares a prediction with an earlier one.
func revised(now, before program.Prediction) string {
	const ticks = 1e12 // per second
	peak := func(made program.Prediction) costmodel.Bytes {
		return costmodel.Bytes(slices.Max(append([]int64{0}, made.Peaks...)))
	}
	text := fmt.Sprintf("peak %v (was %v)", peak(now), peak(before))
	if now.StepTicks == 0 { // only weights are loaded
		return text
	}
	return fmt.Sprintf("step %s (was %s), %s", show.Seconds(float64(now.StepTicks)/ticks), show.Seconds(float64(before.StepTicks)/ticks), text)
}

// share predicts a step again if several devices of the program share a GPU, and adds a note, as a
// plan assumes one GPU per device. on has the GPU of each device. Kernels on one GPU alternate.
func (job *compiled) share(on []int) error {
	if job.seconds == nil || !shares(on) {
		return nil
	}
	simulated, err := simulate.Shared(job.Program, on)
	if err != nil {
		return err
	}
	const ticks = 1e12 // per second
	seconds := float64(simulated.Makespan) / ticks
	job.shared = []string{fmt.Sprintf("several devices share one GPU: a step takes %s, and %s with one GPU each", show.Seconds(seconds), show.Seconds(*job.seconds))}
	job.seconds = &seconds
	return nil
}

// shares reports that two devices are on one GPU.
func shares(on []int) bool {
	sorted := slices.Sorted(slices.Values(on))
	return len(slices.Compact(sorted)) < len(on)
}

// together returns the numbers of the GPUs that a program's devices were measured on; nil if each
// is on its own, or if that is unknown.
func (job *compiled) together(of *program.Program) []int {
	numbers, on := make(map[string]int), make([]int, len(of.Devices))
	for i := range of.Devices {
		name := job.gpus[of.Devices[i].ID]
		if name == "" {
			name = fmt.Sprint("alone ", i)
		}
		if _, known := numbers[name]; !known {
			numbers[name] = i
		}
		on[i] = numbers[name]
	}
	if !shares(on) {
		return nil
	}
	return on
}

// verdict lists the faults, one per line, or says that there are none.
func verdict(name string, replicated bool, report *devicemap.Report) string {
	faults, how := report.Faults, ""
	if report.Verdict == "tight" {
		how = ", tightly"
	}
	if slices.ContainsFunc(report.Devices, func(device devicemap.Prediction) bool { return device.Predicted.AtLeast }) {
		how = " as far as it is counted"
	}
	if len(faults) == 0 {
		if replicated {
			return name + ": OK: every GPU runs the whole model, and it fits" + how + "\n"
		}
		return name + ": device map OK: every module is placed once and fits" + how + "\n"
	}
	var builder strings.Builder
	const shown = 100 // a map of another model has a fault for each module
	for i, f := range faults {
		if i == shown {
			fmt.Fprintf(&builder, "and %d more\n", len(faults)-shown)
			break
		}
		f.Message = costmodel.Messagef("%s", f.Message.Words(ask.Say))
		builder.WriteString(out.Shortened(out.OneLine(f.String()), out.MaxLine) + "\n")
	}
	return builder.String() + show.Plural(len(faults), "fault") + "\n"
}
