package show

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Advice names the unit that alone sets the peak, and tried changes that would lower it; empty if
// no unit does.
func Advice(ctx context.Context, asked *ask.Question, solution *planner.Solution) []string {
	alone := solution.Alone
	if alone == "" {
		return nil
	}
	verb := "sets"
	if strings.Contains(alone, " + ") {
		verb = "set"
	}
	prediction := &solution.Devices[solution.Bottleneck]
	msg := fmt.Sprintf("%s alone %s the peak: GPU %d holds %v (%s), and more GPUs will not lower it",
		alone, verb, solution.Bottleneck, costmodel.Bytes(prediction.Predicted.PeakAllocatedBytes), prediction.Predicted.PeakAt)
	if shares(asked.Graph, strings.Split(alone, " + ")) {
		msg += "; they share a parameter, so only an untied checkpoint lets the head leave the embedding's GPU"
	}
	fewer, lower := asked.Alternatives(ctx, solution.LargestShare)
	for i := range fewer {
		msg += fmt.Sprintf("; %s would do as well", ask.ChangeText(&fewer[i]))
	}
	if helps := Changes(lower); len(helps) > 0 {
		msg += "; what would lower it: " + strings.Join(helps, "; ")
	}
	return []string{msg}
}

// shares reports that two of the units share a parameter, and that no join in the forward, such as
// a residual sum, keeps them together anyway.
func shares(graph *modelgraph.Graph, names []string) bool {
	return slices.ContainsFunc(graph.TiedUnits(), func(units []int) bool {
		found := 0
		for _, unit := range units {
			if graph.Units[unit].Joined {
				return false
			}
			if slices.Contains(names, graph.Units[unit].Name) {
				found++
			}
		}
		return found > 1
	})
}

// Changes returns a line for each change with its result. A tight result is marked in parentheses
// after its flags: every line of a change that fits ends in "fits".
func Changes(changes []strategy.Change) []string {
	var out []string
	for i := range changes {
		out = append(out, Change(&changes[i])+": "+outcome(changes[i].Row.Solution))
	}
	return out
}

// Change returns the flags of a change. A tight result is marked.
func Change(change *strategy.Change) string {
	text := ask.ChangeText(change)
	if change.Row.Solution.Verdict == tight {
		text += " (tight)"
	}
	return text
}

// outcome describes the result of a changed problem, in the units of the share.
func outcome(solution *planner.Solution) string {
	fits := "fits"
	prediction := &solution.Devices[solution.Bottleneck]
	switch {
	case solution.LargestShare > 1:
		fits = "does not fit yet"
	case prediction.Predicted.AtLeast:
		fits = "may fit"
	}
	return fmt.Sprintf("fullest GPU %s%s, %s", least(&prediction.Predicted), sized(prediction.Predicted.PeakAllocatedBytes+prediction.Predicted.OverheadBytes, prediction.Budget), fits)
}
