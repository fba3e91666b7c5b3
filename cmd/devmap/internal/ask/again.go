package ask

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// OfPlan returns the question that a plan answers, made again from the plan; nil if no flags make it.
// A plan does not say all that its command said: pins, and the file of a topology, are not in it.
func OfPlan(ctx context.Context, plan *devicemap.Plan, graph *modelgraph.Graph) *Question {
	if len(plan.Topology.Devices) == 0 {
		return nil
	}
	var gpus GPUs
	gpus.unfiled(&plan.Topology, len(plan.Topology.Devices), nil, "")
	words := []string{"--gpus", gpus.gpus, "--gpu", gpus.gpu}
	if name := plan.Objective.Name; name != "" && name != flagNamed("objective").defaultValue {
		words = append(words, "--objective", name)
	}
	switch {
	case plan.Offload.FromDiskBytes > 0:
		words = append(words, "--offload", "disk")
	case plan.Offload.Bytes > 0:
		words = append(words, "--offload", "cpu")
	}
	// A flag for each field that is not the default of the flags before it.
	fields := costmodel.Fields()
	for _, early := range []string{"mode", "strategy", "runtime", ""} {
		for i := range fields {
			field := &fields[i]
			if early != "" && field.Name != early {
				continue
			}
			asked, workload, err := again(ctx, words, graph)
			if asked == nil {
				return nil
			}
			value := valueOf(field.Ref(&plan.Workload))
			if value == valueOf(field.Ref(&workload)) && (err == nil || early == "") {
				continue
			}
			words = append(words, wordsOf(costmodel.Setting{Field: field.Name, Value: value})...)
		}
	}
	asked, workload, err := again(ctx, words, graph)
	if asked == nil || err != nil || !reflect.DeepEqual(workload, plan.Workload) || !reflect.DeepEqual(*asked.Topology, plan.Topology) {
		return nil
	}
	return asked
}

// again returns the question of a command's flags for a model, and its resolved workload.
func again(ctx context.Context, words []string, graph *modelgraph.Graph) (*Question, costmodel.Workload, error) {
	cmd := &cobra.Command{Use: "plan MODEL"}
	request := New(cmd)
	cmd.SetContext(ctx)
	if cmd.Flags().Parse(words) != nil {
		return nil, costmodel.Workload{}, nil
	}
	asked, err := request.parse(nil)
	if err != nil {
		return nil, costmodel.Workload{}, nil
	}
	request.native(graph, &asked.Workload)
	asked.Graph = graph
	given := asked.Workload
	asked.Options.Asked = &given
	problem, err := asked.Resolved()
	if err != nil {
		return asked, asked.Workload, err
	}
	asked.Problem = problem
	return asked, problem.Costs.Workload, nil
}

// Line returns the command line of a question with a change; nil: as it is. model is its argument.
func (asked *Question) Line(model string, change *strategy.Change) string {
	return Line(asked.request, model, change)
}

// Line is [Question.Line] of the flags alone. It is empty if the change does not suit them.
func Line(request *Request, model string, change *strategy.Change) string {
	if change == nil {
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
	for i, word := range words {
		words[i] = emit.Shell(word)
	}
	return strings.Join(words, " ")
}
