package show

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Certificate is the line that says how good the map is.
func (printer *Printer) Certificate(solution *planner.Solution, imbalance float64) {
	prediction := &solution.Devices[solution.Bottleneck]
	if what := timed(solution); what != "" {
		printer.printf("%s %s · %s · %s · largest share %.2f%% (GPU %d, %s) · imbalance %.3f\n",
			what, Seconds(solution.Value), proved(solution.LowerBound, solution.Bound, "", Seconds), solution.Status, 100*solution.LargestShare, solution.Bottleneck,
			sized(prediction.Predicted.PeakAllocatedBytes+prediction.Predicted.OverheadBytes, prediction.Budget), imbalance)
		return
	}
	proof := fmt.Sprintf("%s · %s", proved(solution.LowerBound, solution.Bound, "", percent), solution.Status)
	if offloaded := solution.Offloaded; offloaded != nil { // the status is that of what left, on the next line
		proof = proved(offloaded.Rest.LowerBound, offloaded.Rest.Bound, " for what stays", percent)
	}
	printer.printf("largest share %.2f%% (GPU %d, %s) · imbalance %.3f · %s\n",
		100*solution.Value, solution.Bottleneck, sized(prediction.Predicted.PeakAllocatedBytes+prediction.Predicted.OverheadBytes, prediction.Budget), imbalance, proof)
}

// proved is a lower bound with its argument. None above nothing is none: the search
// for one was stopped before it came to any.
func proved(bound float64, argument, of string, unit func(float64) string) string {
	if bound <= 0 {
		return "no lower bound" + of + " was proved in the time"
	}
	return fmt.Sprintf("lower bound%s %s (%s)", of, unit(bound), argument)
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }

// timed is the time that a solution minimises, of a step or a request; empty:
// it minimises none.
func timed(solution *planner.Solution) string {
	switch solution.Objective {
	case planner.Time:
		return "step"
	case planner.Latency:
		return "latency"
	case planner.Memory:
	}
	return ""
}

// Offloaded says what travels.
func (printer *Printer) Offloaded(solution *planner.Solution) {
	offloaded := solution.Offloaded
	if offloaded == nil {
		return
	}
	from := ""
	switch {
	case offloaded.FromDisk == offloaded.Bytes:
		from = " from disk"
	case offloaded.FromDisk > 0:
		from = " (" + costmodel.Bytes(offloaded.FromDisk).String() + " of it from disk)"
	}
	printer.printf("offloaded: %s; %v%s travel to the first GPU in each forward, and at least %v must · %s\n",
		Plural(offloaded.Units, "unit"), costmodel.Bytes(offloaded.Bytes), from, costmodel.Bytes(offloaded.LowerBound), offloaded.Status)
}
