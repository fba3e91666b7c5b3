package strategy

import (
	"cmp"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Row is one strategy under one runtime, or a diffusion pipeline: then it has the solution, whether
// that fits, and the least headroom.
type Row struct {
	// Workload asks for the row alone; Resolved is its resolved form.
	Workload, Resolved costmodel.Workload
	// Current: the map of device_map="auto", not a planned one.
	Current bool
	// Refused is why there is no answer: the model or the workload does not go with the strategy.
	// All below is then empty.
	Refused error
	// Solution is the best placement, whether it fits or not. Its pools are followed if it fits and
	// the context has not ended; else they are the ranges of their kind.
	Solution *planner.Solution
	// Fits: every GPU's share fits in its memory.
	Fits bool
	// Headroom is the smallest free memory of a GPU, in bytes; negative if it lacks memory.
	Headroom int64
	// HostBytes are the bytes of offload in host memory for all GPUs together.
	HostBytes int64
	// Communication is the bytes that the busiest GPU sends in a step.
	Communication int64
	// StepSeconds is nil if it is not known.
	StepSeconds *float64
	// Tokens are the tokens of all GPUs together in a step. The batch is the whole one for a device
	// map and a pipeline, and each GPU's for the others.
	Tokens int64
	// Samples are the images or sounds of a model that reads no text; 0 of others.
	Samples int64
	// SecondsPerToken makes steps of different batches comparable: seconds over the tokens of all
	// GPUs. +Inf if the time is not known.
	SecondsPerToken float64
}

// answer fills in the results of a resolved problem and its best placement.
func (row *Row) answer(problem *planner.Problem, solution *planner.Solution) {
	row.Solution, row.Fits = solution, solution.LargestShare <= 1
	row.Headroom = slices.MinFunc(solution.Devices, func(a, b devicemap.Prediction) int {
		return cmp.Compare(a.HeadroomBytes, b.HeadroomBytes)
	}).HeadroomBytes
	if problem.Diffusion != nil {
		return
	}
	costs, topology := problem.Costs, problem.Topology
	row.Resolved, row.HostBytes = costs.Workload, costs.HostBytes
	if solution.Costs != nil { // with the forms and degrees that were chosen
		costs = solution.Costs
	}
	row.Communication = steptime.Communication(costs, topology, places(solution.Map))
	row.StepSeconds = devicemap.StepSeconds(costs, topology, solution.Map)
	row.Samples = row.Resolved.Batch * replicas(&row.Resolved, int64(len(topology.Devices)))
	row.Tokens = row.Samples * (cmp.Or(costs.SampleTokens, row.Resolved.Seq) + row.Resolved.NewTokens)
	if costs.SampleTokens == 0 {
		row.Samples = 0
	}
	row.SecondsPerToken = math.Inf(1)
	if row.StepSeconds != nil && row.Tokens > 0 {
		row.SecondsPerToken = *row.StepSeconds / float64(row.Tokens)
	}
}

// places are the devices of a map's units; nil if every GPU runs the whole model.
func places(placed devicemap.Map) []int {
	var devices []int
	for _, device := range placed {
		devices = append(devices, int(device))
	}
	return devices
}

// compare puts the best row first. Rows that fit come by time a token, then by free memory. Rows
// that do not fit follow by missing memory, and refused rows are last.
func compare(a, b *Row) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(order(a), order(b)),
		cmp.Compare(b.Headroom, a.Headroom),
	)
}

func rank(row *Row) int {
	switch {
	case row.Refused != nil:
		return 2
	case !row.Fits:
		return 1
	}
	return 0
}

func order(row *Row) float64 {
	if rank(row) > 0 {
		return 0
	}
	return row.SecondsPerToken
}
