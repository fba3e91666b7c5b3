package ask

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// OfPlan returns the question that a plan answers, made again from the plan; nil if no flags make it.
// It names the plan's engine and schedule, so that changes keep both. A plan does not say all that its
// command said: pins, and the file of a topology, are not in it.
func OfPlan(ctx context.Context, plan *devicemap.Plan, graph *modelgraph.Graph) *Question {
	if len(plan.Topology.Devices) == 0 {
		return nil
	}
	words := wordsOfGPUs(&plan.Topology, plan.Workload.Mode)
	if name := plan.Objective.Name; name != "" && name != flagNamed("objective").defaultValue {
		words = append(words, "--objective", name)
	}
	workload := &plan.Workload
	switch host := workload.DeepSpeed; {
	case plan.Offload.FromDiskBytes > 0:
		words = append(words, "--offload", "disk")
	case plan.Offload.Bytes > 0, workload.HostShards, host != nil && (host.OffloadOptimizer || host.OffloadParams):
		words = append(words, "--offload", string(planner.CPU))
	}
	if lengths := &workload.Lengths; lengths.Max > 0 {
		words = append(words, "--lengths", strconv.FormatFloat(lengths.Mean, 'g', -1, 64)+","+strconv.FormatInt(lengths.Max, 10))
	}
	words = wordsOfFields(ctx, words, workload, graph)
	var made *Question
	for _, more := range pinned(workload, words) {
		if asked := again(ctx, slices.Concat(words, more), graph); asked != nil && asked.makes(plan) {
			made = asked
			words = slices.Concat(words, more)
		}
	}
	return made
}

// wordsOfGPUs are the flags of a plan's devices: a number or sizes, hosts, and what is set aside.
func wordsOfGPUs(topology *costmodel.Topology, mode costmodel.Mode) []string {
	var gpus GPUs
	gpus.unfiled(topology, len(topology.Devices), nil, "")
	kind, err := catalogue.Find(gpus.gpu)
	listed := kind.Device(mode)
	of, hosts := topology.Devices, map[string]bool{}
	alike := err == nil && !slices.ContainsFunc(of, func(device costmodel.Device) bool {
		return device.Name != listed.Name || device.CapacityBytes != listed.CapacityBytes || device.ReservedBytes < listed.ReservedBytes
	})
	var sizes, reserved []string
	for i := range of {
		aside := of[i].ReservedBytes
		if alike {
			aside -= listed.ReservedBytes
		}
		sizes, reserved = append(sizes, exact(of[i].CapacityBytes)), append(reserved, exact(aside))
		hosts[of[i].Host] = true
	}
	words := []string{"--gpus", strings.Join(sizes, ","), "--gpu", gpus.gpu}
	if alike {
		words[1] = strconv.Itoa(len(of))
	}
	if len(hosts) > 1 {
		words = append(words, "--nodes", strconv.Itoa(len(hosts)))
	}
	switch same := slices.Compact(slices.Clone(reserved)); {
	case len(same) > 1:
		words = append(words, "--reserve", strings.Join(reserved, ","))
	case same[0] != exact(0):
		words = append(words, "--reserve", same[0])
	}
	return words
}

// wordsOfFields adds a flag for each field of a plan's workload that is not the default of the flags before.
func wordsOfFields(ctx context.Context, words []string, planned *costmodel.Workload, graph *modelgraph.Graph) []string {
	fields := costmodel.Fields()
	is, resolved := workloadOf(again(ctx, words, graph))
	// Each of the first ones sets defaults of all that follow; the second "" looks at them again.
	for _, early := range []string{"mode", "strategy", "runtime", "preset", "", ""} {
		for i := range fields {
			field := &fields[i]
			if early != "" && field.Name != early {
				continue
			}
			value := valueIn(field, planned)
			more := wordsOf(costmodel.Setting{Field: field.Name, Value: value})
			if value == "" || value == valueIn(field, &is) && (resolved || early == "") || slices.Contains(words, more[0]) || zeroOf(field, planned) && zeroOf(field, &is) {
				continue
			}
			words = append(words, more...)
			is, resolved = workloadOf(again(ctx, words, graph))
		}
	}
	return words
}

// workloadOf is the workload of a question, and whether it is resolved; nil has the zero one.
func workloadOf(asked *Question) (workload costmodel.Workload, resolved bool) {
	switch {
	case asked == nil:
		return workload, false
	case asked.Costs == nil:
		return asked.Workload, false
	}
	return asked.Costs.Workload, true
}

// valueIn is a field's value as its flag has it.
func valueIn(field *costmodel.Field, workload *costmodel.Workload) string {
	if text := field.Text(workload); field.Name == "images" && text != "" { // its mean too
		return text
	}
	return valueOf(field.Ref(workload))
}

// zeroOf reports a field without a value.
func zeroOf(field *costmodel.Field, workload *costmodel.Workload) bool {
	return reflect.ValueOf(field.Ref(workload)).Elem().IsZero()
}

// pinned are flags to add to others, in turn: none, and the engine and the schedule of a workload.
func pinned(workload *costmodel.Workload, words []string) [][]string {
	out := [][]string{nil}
	if !slices.Contains(words, "--runtime") && len(workload.Strategy.Traits().Runtimes) > 1 {
		out = append(out, []string{"--runtime", workload.Runtime})
	}
	if !slices.Contains(words, "--schedule") && workload.Schedule != "" {
		out = append(out, []string{"--schedule", string(workload.Schedule)})
	}
	return out
}

// makes reports that a question is a plan's. Fields that plan files lack are not compared.
func (asked *Question) makes(plan *devicemap.Plan) bool {
	if asked.Costs == nil {
		return false
	}
	workload := asked.Costs.Workload
	workload.OneGPU, workload.HostStates, workload.Usual = plan.Workload.OneGPU, plan.Workload.HostStates, plan.Workload.Usual
	return reflect.DeepEqual(workload, plan.Workload) && reflect.DeepEqual(*asked.Topology, plan.Topology)
}

// again returns the question of a command's flags for a model; nil if the flags are refused. Without an
// answer it has no costs.
func again(ctx context.Context, words []string, graph *modelgraph.Graph) *Question {
	cmd := &cobra.Command{Use: "plan MODEL"}
	request := New(cmd)
	cmd.SetContext(ctx)
	if cmd.Flags().Parse(words) != nil {
		return nil
	}
	asked, err := request.parse(nil)
	if err != nil && request.asProgram(graph) { // as [Request.Problem]
		asked, err = request.parse(nil)
	}
	if err != nil {
		return nil
	}
	if request.preset != nil {
		if _, err := request.preset.settle(request, &asked.Workload, int64(len(asked.Topology.Devices))); err != nil {
			return nil
		}
	}
	request.native(graph, &asked.Workload)
	asked.Graph = graph
	given := asked.Workload
	asked.Options.Asked = &given
	if problem, err := asked.Resolved(); err == nil {
		asked.Problem = problem
	}
	return asked
}

// Line returns the command line of a question with a change; nil: as it is. model is its argument.
func (asked *Question) Line(model string, change *strategy.Change) string {
	return Line(asked.request, model, change)
}

// Line is [Question.Line] of the flags alone. It is empty if the change does not suit them.
func Line(request *Request, model string, change *strategy.Change) string {
	whole := change == nil
	if whole {
		change = &strategy.Change{}
	}
	from := request.cmd
	cmd := &cobra.Command{Use: from.Use}
	New(cmd)
	words := []string{"devmap", from.Name(), model}
	if copyFlags(from.Flags(), cmd.Flags(), change) != nil {
		return ""
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if slices.Contains([]string{"output", "report", "force", "json", "explain", "emit"}, flag.Name) {
			return
		}
		if !whole && flag.Name == "objective" && flag.Value.String() == Front {
			return // a change is of the map with the least memory
		}
		if flag.Value.Type() == "bool" {
			words = append(words, strings.TrimSuffix("--"+flag.Name+"="+flag.Value.String(), "=true"))
			return
		}
		values := valuesOf(flag)
		if flag.Value.Type() == "stringSlice" {
			values = []string{strings.Join(values, ",")}
		}
		for _, value := range values {
			words = append(words, "--"+flag.Name, value)
		}
	})
	return Typed(words)
}
