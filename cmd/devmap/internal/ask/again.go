package ask

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// PlanFlags returns flags of `devmap plan` for the settings of a plan file. A plan does not say all
// that its command said: pins, and the links of a topology file, are not in them.
func PlanFlags(plan *devicemap.Plan) []string {
	if len(plan.Topology.Devices) == 0 {
		return nil
	}
	var gpus GPUs
	gpus.unfiled(&plan.Topology, len(plan.Topology.Devices), nil, "")
	words := []string{"--gpus", gpus.gpus, "--gpu", gpus.gpu}
	words = append(words, Flags(&plan.Workload)...)
	if name := plan.Objective.Name; name != "" && name != flagNamed("objective").defaultValue {
		words = append(words, "--objective", name)
	}
	switch {
	case plan.Offload.FromDiskBytes > 0:
		words = append(words, "--offload", "disk")
	case plan.Offload.Bytes > 0:
		words = append(words, "--offload", "cpu")
	}
	return words
}

// Line returns the command line of a question with a change; nil: as it is. model is its argument.
func (asked *Question) Line(model string, change *strategy.Change) string {
	return asked.request.Line(model, change)
}

// Line is [Question.Line] of the flags alone. It is empty if the change does not suit them.
func (request *Request) Line(model string, change *strategy.Change) string {
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
