package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Answer returns whether a plan fits and what is proved, each as a sentence or more. The proof is
// empty if the plan has none.
func Answer(plan *devicemap.Plan) (answer, proof string) {
	fullest := fullestOf(plan.Devices)
	if fullest == nil {
		return verdictText(plan.Verdict, &devicemap.Prediction{}), ""
	}
	answer = verdictText(plan.Verdict, fullest)
	unit := percent
	if name := plan.Objective.Name; name == string(planner.Time) || name == string(planner.Latency) {
		unit = Seconds
		answer += fmt.Sprintf(" %s %s.", map[string]string{string(planner.Time): "Step", string(planner.Latency): "Latency"}[name], Seconds(plan.Objective.Value))
	}
	answer += " " + fullestText(fullest)
	if at := fullest.Predicted.PeakAt; at != "" {
		answer += " Its peak is at: " + at + "."
	}
	if plan.Verdict == tight {
		answer += tightGPUs(plan.Devices)
	}
	if plan.Objective.Status == "" || plan.Verdict == doesNotFit { // the bound is of plans that do not fit
		return answer, ""
	}
	if len(plan.Pipeline) > 0 && plan.Objective.LowerBound <= 0 {
		return answer, Sentence(plan.Objective.Status + ": diffusion pipelines have no lower bound")
	}
	if left := &plan.Offload; left.Bytes > 0 { // the bytes that travel are what is least
		status := string(planner.Feasible)
		if left.Bytes == left.LowerBoundBytes {
			status = string(planner.Optimal)
		}
		return answer, strings.Join(travelling(offloadedUnits(plan), left.Bytes, left.FromDiskBytes, left.LowerBoundBytes, status), " ")
	}
	proof = Sentence(plan.Objective.Status + ": " + proved(plan.Objective.LowerBound, plan.Objective.Bound, "", unit))
	if plan.Objective.LowerBound > 0 {
		proof += fmt.Sprintf(" Gap %.2f%%.", 100*plan.Objective.Gap)
	}
	return answer, proof
}

// tightGPUs names the GPUs whose allocator's pool may not fit, if not all are so.
func tightGPUs(devices []devicemap.Prediction) string {
	var names []string
	for i := range devices {
		if devices[i].Verdict == tight {
			names = append(names, fmt.Sprint(devices[i].Device))
		}
	}
	switch {
	case len(names) == 0 || len(names) == len(devices):
		return ""
	case len(names) == 1:
		return fmt.Sprintf(" GPU %s is tight.", names[0])
	}
	return fmt.Sprintf(" GPUs %s are tight.", strings.Join(names, ", "))
}

// offloadedUnits names the modules of a plan that are on no GPU: the first and the last of each run.
func offloadedUnits(plan *devicemap.Plan) string {
	var runs []string
	count := 0
	for i := 0; i < len(plan.DeviceMap); i++ {
		first := &plan.DeviceMap[i]
		if first.Device >= 0 {
			continue
		}
		from := i
		for i+1 < len(plan.DeviceMap) && plan.DeviceMap[i+1].Device == first.Device {
			i++
		}
		run := first.Key
		if i > from {
			run += " – " + plan.DeviceMap[i].Key
		}
		runs, count = append(runs, run+" on "+tierName(first.Device)), count+i+1-from
	}
	return fmt.Sprintf("%s (%s)", Plural(count, "module"), strings.Join(runs, ", "))
}

// fullestOf returns the GPU with the largest share of its budget; nil: there is none.
func fullestOf(devices []devicemap.Prediction) (fullest *devicemap.Prediction) {
	for i := range devices {
		if fullest == nil || devices[i].Share > fullest.Share {
			fullest = &devices[i]
		}
	}
	return fullest
}

// Limit returns what a plan's fullest GPU has at its peak, a sentence; empty: there are no GPUs.
func Limit(plan *devicemap.Plan) string {
	fullest := fullestOf(plan.Devices)
	if fullest == nil {
		return ""
	}
	return fmt.Sprintf("GPU %d limits the plan. At its peak (%s) it has: %s.", fullest.Device, fullest.Predicted.PeakAt, parts(&fullest.Predicted, plan.Workload.Mode))
}

// Bounds returns how a map was found and why none is better, a sentence each.
func Bounds(asked *ask.Question, solution *planner.Solution) (said []string) {
	if solution.Method != "" {
		said = append(said, "Method: "+solution.Method+".")
	}
	if solution.Bound != "" {
		said = append(said, "Bound: "+boundReason(solution)+".")
	}
	if asked.Diffusion != nil {
		return said
	}
	if solution.Offloaded != nil {
		said = append(said, proofText(solution))
	}
	for _, bound := range solution.Arguments(&asked.Problem) {
		value := percent(bound.Value)
		if timed(solution) != "" {
			value = Seconds(bound.Value)
		}
		said = append(said, fmt.Sprintf("Bound by %s: %s (%s).", bound.Name, value, bound.What))
	}
	return said
}
