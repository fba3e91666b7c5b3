package show

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Explain says what limits the plan, how the map was found, why no map is better, and which tried
// changes are next best.
func (printer *Printer) Explain(ctx context.Context, asked *ask.Question, solution *planner.Solution) {
	prediction := &solution.Devices[solution.Bottleneck]
	what := "binding"
	if timed(solution) != "" {
		what = "fullest"
	}
	printer.printf("%s: GPU %d at its peak, %s: %s; it runs %s\n",
		what, solution.Bottleneck, prediction.Predicted.PeakAt, parts(&prediction.Predicted, printer.work.Mode), printer.runs(solution.Map, devicemap.Device(solution.Bottleneck)))
	if solution.Offloaded != nil {
		printer.printf("method: units leave until the rest fits, so that few bytes travel; where the rest goes:\n")
	}
	printer.printf("method: %s\n", solution.Method)
	printer.printf("bound: %s, after %s\n", boundReason(solution), Plural(solution.Probes, "target"))
	for _, bound := range solution.Arguments(&asked.Problem) {
		tight := ""
		if bound.Name == solution.Bound {
			tight = ", the tight one"
		}
		value := fmt.Sprintf("%.2f%%", 100*bound.Value)
		if timed(solution) != "" {
			value = Seconds(bound.Value)
		}
		printer.printf("bound by %s: %s (%s)%s\n", bound.Name, value, bound.What, tight)
	}
	if ctx.Err() != nil {
		printer.printf("change: none was tried, as the search was interrupted\n")
		return
	}
	if solution.Offloaded != nil { // changes with which all of it fits
		whole := *asked
		whole.Options.NoOffload = true
		changes := whole.Smallest(ctx)
		for i := range changes {
			printer.printf("change: %s: nothing leaves the GPUs, %s\n", ask.ChangeText(&changes[i]), Effect(changes[i].Row.Solution))
		}
		if len(changes) == 0 {
			printer.printf("change: none was found with which nothing leaves the GPUs\n")
		}
		return
	}
	changes := asked.Next(ctx, solution.Value)
	for i := range changes {
		printer.printf("change: %s: %s\n", ask.ChangeText(&changes[i]), Effect(changes[i].Row.Solution))
	}
	if len(changes) == 0 {
		printer.printf("change: none was found that lowers the largest share\n")
	}
}

// Effect describes the result of a changed problem, with its value.
func Effect(solution *planner.Solution) string {
	if what := timed(solution); what != "" {
		return fmt.Sprintf("%s %s, %s", what, Seconds(solution.Value), outcome(solution))
	}
	return fmt.Sprintf("largest share %.2f%%, %s", 100*solution.Value, outcome(solution))
}

// boundReason returns the argument of the lower bound.
func boundReason(solution *planner.Solution) string {
	better := "smaller share"
	if what := timed(solution); what != "" {
		better = "shorter " + what
	}
	switch solution.Bound {
	case "largest unit":
		return "largest unit (one unit, or one tie group, takes that much by itself)"
	case "average":
		return "average (all bytes of a moment over all budgets)"
	case "search":
		switch {
		case solution.LowerBound <= 0:
			return "search (stopped before it refuted any)"
		case solution.Status != planner.Optimal:
			return fmt.Sprintf("search (every %s up to it was refuted)", better)
		}
		return fmt.Sprintf("search (every %s was refuted)", better)
	case "relaxed search":
		return "relaxed search (every smaller share was refuted with units that alternate in any order, or with those that differ little as one kind)"
	}
	return solution.Bound
}
