package devicemap

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// fieldFault is a field of a plan that contradicts another field, or has an impossible value.
type fieldFault struct{ place, msg string }

func faultOf(place, format string, args ...any) *fieldFault {
	return &fieldFault{place, fmt.Sprintf(format, args...)}
}

// in returns the fault as an error of a file; nil if there is none.
func (fault *fieldFault) in(file string) error {
	if fault == nil {
		return nil
	}
	return &modelgraph.SyntaxError{File: file, Place: fault.place, Msg: fault.msg}
}

// strategyFault reports a strategy that does not match the rest of the plan.
func (plan *Plan) strategyFault() *fieldFault {
	workload := &plan.Workload
	if len(plan.Phases) > 0 { // a diffusion pipeline has no strategy
		return nil
	}
	if workload.Mode == costmodel.Serve {
		return servingFault(plan)
	}
	if workload.NewTokens > 0 && workload.Mode != costmodel.Infer {
		return faultOf("workload.new_tokens", "mode %s generates no tokens", workload.Mode)
	}
	strategy, traits := workload.Strategy, workload.Strategy.Traits()
	if workload.Recompute == "auto" && !traits.Staged {
		return faultOf("workload.recompute", "it is chosen for each stage of a pipeline, and strategy %q has none: plan again with the mode that you want", strategy)
	}
	return traitsFault(plan)
}

// servingFault reports sizes that no engine serves.
func servingFault(plan *Plan) *fieldFault {
	workload := &plan.Workload
	if !costmodel.Serves(workload.Runtime) {
		return faultOf("workload.runtime", "%q does not serve; %q does", workload.Runtime, costmodel.LlamaCPP)
	}
	const most = 1 << 32
	pass, tokens := "ubatch", workload.UBatch
	if workload.Runtime != costmodel.LlamaCPP {
		pass, tokens = "batched_tokens", workload.BatchedTokens
	}
	for field, value := range map[string]int64{"context": workload.Context, "sequences": workload.Sequences, pass: tokens} {
		if value < 1 || value > most {
			return faultOf("workload."+field, "%d is not between 1 and 2^32", value)
		}
	}
	if last := int64(len(plan.Topology.Devices)) - 1; workload.DraftGPU < 0 || workload.DraftGPU > max(0, last) {
		return faultOf("workload.draft_gpu", "%d is not a GPU from 0 to %d", workload.DraftGPU, last)
	}
	if workload.HostExperts < 0 || workload.HostExperts > most {
		return faultOf("workload.host_experts", "%d is not between 0 and 2^32", workload.HostExperts)
	}
	return nil
}

// traitsFault reports a runtime, a schedule, stages or shards that the strategy cannot have.
func traitsFault(plan *Plan) *fieldFault {
	workload := &plan.Workload
	strategy, traits := workload.Strategy, workload.Strategy.Traits()
	switch {
	case !slices.Contains(traits.Runtimes, workload.Runtime):
		return faultOf("workload.runtime", "%q does not run strategy %q (%s): plan again with the strategy that you want", workload.Runtime, strategy, strings.Join(traits.Runtimes, ", "))
	case traits.Staged && workload.Schedule == "":
		return faultOf("workload.schedule", "missing: strategy %q runs its stages by one; plan again with the strategy that you want", strategy)
	case !traits.Staged && workload.Schedule != "":
		return faultOf("workload.schedule", "%q is of strategy %q, and the plan's is %q: plan again with the strategy that you want", workload.Schedule, costmodel.Pipeline, strategy)
	case traits.Replicated && len(plan.Stages) > 0:
		return faultOf("stages", "under %s every GPU runs the whole model: there are none", strategy)
	case traits.Replicated && workload.ShardDegree > 0 && int64(len(plan.Topology.Devices))%workload.ShardDegree != 0:
		return faultOf("workload.shard_degree", "%d does not divide the plan's %d GPUs", workload.ShardDegree, len(plan.Topology.Devices))
	case traits.Staged && len(plan.Stages) == 0:
		return faultOf("stages", "missing: strategy %q has them", strategy)
	}
	return nil
}

// figuresFault reports an impossible number, or one that disagrees with the numbers it follows
// from.
func (plan *Plan) figuresFault() *fieldFault {
	for _, count := range []struct {
		field string
		value int64
		most  int64
	}{
		{"model.params", plan.Model.Params, math.MaxInt64},
		{"model.buffers", plan.Model.Buffers, math.MaxInt64},
		{"offload.bytes", plan.Offload.Bytes, math.MaxInt64},
		{"offload.from_disk_bytes", plan.Offload.FromDiskBytes, plan.Offload.Bytes},
		{"offload.lower_bound_bytes", plan.Offload.LowerBoundBytes, plan.Offload.Bytes},
	} {
		if count.value < 0 || count.value > count.most {
			return faultOf(count.field, "%d is not between 0 and %d", count.value, count.most)
		}
	}
	if seconds := plan.StepSeconds; seconds != nil {
		switch {
		case *seconds < 0:
			return faultOf("step_seconds", "%v is less than 0: no step takes that", *seconds)
		case plan.Workload.Mode == costmodel.Load:
			return faultOf("step_seconds", "%v, and mode %q runs no step: it is null", *seconds, costmodel.Load)
		}
	}
	// Imbalance is 0 in a plan without the field, and in one without predictions.
	if found := imbalance(plan.Devices); plan.Imbalance != 0 && len(plan.Devices) > 0 && !near(plan.Imbalance, found) {
		return faultOf("imbalance", "%v, and the largest peak of \"devices\" is %v times their mean", plan.Imbalance, found)
	}
	if found := worst(plan.Devices); plan.Verdict == "" {
		plan.Verdict = found
	} else if len(plan.Devices) > 0 && plan.Verdict != found {
		return faultOf("verdict", "%q, and the worst of \"devices\" is %q", plan.Verdict, found)
	}
	return plan.objectiveFault()
}

// objectiveFault reports a bound above the value, and a gap or status that does not follow from the
// two.
func (plan *Plan) objectiveFault() *fieldFault {
	objective := &plan.Objective
	value, bound := objective.Value, objective.LowerBound
	switch {
	case value < 0:
		return faultOf("objective.value", "%v is less than 0", value)
	case bound < 0:
		return faultOf("objective.lower_bound", "%v is less than 0", bound)
	case !plan.valueFollows():
		return faultOf("objective.value", "%v, and the largest share of its budget that a device of \"devices\" has is %v", value, largestShare(plan.Devices))
	case bound > value && !near(bound, value):
		return faultOf("objective.lower_bound", "%v is above objective.value, %v: nothing is below a lower bound", bound, value)
	}
	if len(plan.Phases) > 0 { // devmap computes no bound for diffusion pipelines
		return nil
	}
	gap := 0.0
	if value > 0 {
		gap = (value - bound) / value
	}
	switch {
	case math.Abs(objective.Gap-gap) > tolerance:
		return faultOf("objective.gap", "%v, and objective.value less lower_bound is %v of the value", objective.Gap, gap)
	case objective.Status == "optimal" && gap > tolerance:
		return faultOf("objective.status", "%q, and the gap is %v", objective.Status, gap)
	}
	return nil
}

// valueFollows reports that the value of a memory plan is its largest share.
func (plan *Plan) valueFollows() bool {
	return plan.Objective.Name != "memory" || len(plan.Devices) == 0 || near(plan.Objective.Value, largestShare(plan.Devices))
}

// largestShare returns the largest share of a budget among the devices.
func largestShare(predictions []Prediction) float64 {
	var most float64
	for i := range predictions {
		used := predictions[i].Predicted.PeakAllocatedBytes + predictions[i].Predicted.OverheadBytes
		if budget := predictions[i].CapacityBytes - predictions[i].ReservedBytes; budget > 0 {
			most = max(most, float64(used)/float64(budget))
		}
	}
	return most
}

// tolerance is the relative difference allowed between figures that were rounded when written.
const tolerance = 1e-6

func near(a, b float64) bool { return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b)) }

// predictionsFault reports predictions that do not match the topology's devices, or whose parts do
// not add up.
func (plan *Plan) predictionsFault(place string, predictions []Prediction) *fieldFault {
	count := len(plan.Topology.Devices)
	if len(predictions) > 0 && len(predictions) != count {
		return faultOf(place, "%s, and the topology has %d", devices(len(predictions)), count)
	}
	for i := range predictions {
		prediction := &predictions[i]
		if prediction.Device != i {
			return faultOf(fmt.Sprintf("%s[%d].device", place, i), "%d is not %d, its place", prediction.Device, i)
		}
		if fault := prediction.fault(); fault != nil {
			fault.place = place + "[" + strconv.Itoa(i) + "]." + fault.place
			return fault
		}
		if capacity := plan.Topology.Devices[i].CapacityBytes; prediction.CapacityBytes != capacity {
			return faultOf(fmt.Sprintf("%s[%d].capacity_bytes", place, i), "%d, and topology.devices[%d] has %d", prediction.CapacityBytes, i, capacity)
		}
	}
	return nil
}

// fault reports an impossible number of bytes, and totals that differ from the sum of their parts.
func (prediction *Prediction) fault() *fieldFault {
	m := &prediction.Predicted
	if field, value := prediction.unlikely(); field != "" {
		return faultOf(field, "%d bytes: want 0 to %d", value, int64(mostBytes))
	}
	sum := m.ParamsBytes + m.GradsBytes + m.OptimizerStateBytes + m.ActivationsBytes + m.KVCacheBytes + m.WorkspaceBytes + m.CommBuffersBytes
	left := prediction.CapacityBytes - prediction.ReservedBytes - m.PeakAllocatedBytes - m.OverheadBytes
	switch {
	case sum != m.PeakAllocatedBytes:
		return faultOf("predicted.peak_allocated_bytes", "%d, and the parts add up to %d", m.PeakAllocatedBytes, sum)
	case left != prediction.HeadroomBytes:
		return faultOf("headroom_bytes", "%d, and capacity less reserved, peak and overhead is %d", prediction.HeadroomBytes, left)
	case m.SlackBytes[0] > m.SlackBytes[1]:
		return faultOf("predicted.slack_bytes", "%d: the least is more than the most", m.SlackBytes)
	}
	prediction.Budget = prediction.CapacityBytes - prediction.ReservedBytes
	if prediction.Budget > 0 {
		prediction.Share = float64(m.PeakAllocatedBytes+m.OverheadBytes) / float64(prediction.Budget)
	}
	if found := verdictOf(left, m.SlackBytes[1]); prediction.Verdict == "" {
		prediction.Verdict = found
	} else if prediction.Verdict != found {
		return faultOf("verdict", "%q, and with a headroom of %d and up to %d bytes of slack it is %q", prediction.Verdict, left, m.SlackBytes[1], found)
	}
	switch ends := m.PeakRangeBytes; {
	case len(ends) == 0:
	case len(ends) != 2 || ends[0] < 0 || ends[0] > ends[1]:
		return faultOf("predicted.peak_range_bytes", "%d is not the least and the most of a peak", ends)
	}
	return nil
}
