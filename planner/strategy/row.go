package strategy

import (
	"cmp"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Row is one strategy under one runtime.
type Row struct {
	// Workload asks for the row and no other; Resolved is what it comes to.
	Workload, Resolved costmodel.Workload
	// Refused is why there is no answer: the model or the workload does not
	// go with the strategy. All below is then empty.
	Refused error
	// Solution is the best placement, whether it fits or not.
	Solution *planner.Solution
	// Infeasible is why it does not fit, nil where it does.
	Infeasible *planner.InfeasibleError
	// Communication is the bytes that the busiest GPU sends in a step.
	Communication int64
	// StepSeconds is nil where it is not known.
	StepSeconds *float64

	gpus int64
}

// Fits reports that every GPU holds its share.
func (row *Row) Fits() bool { return row.Refused == nil && row.Solution.LargestShare <= 1 }

// Headroom is the least that a GPU has left, in bytes; negative where it
// lacks memory.
func (row *Row) Headroom() int64 {
	if row.Solution == nil {
		return 0
	}
	return slices.MinFunc(row.Solution.Devices, func(a, b devicemap.Prediction) int {
		return cmp.Compare(a.HeadroomBytes, b.HeadroomBytes)
	}).HeadroomBytes
}

// Tokens are what all GPUs together work on in a step: the batch is the whole
// one for a device map and a pipeline, each GPU's own for the others.
func (row *Row) Tokens() int64 {
	workload := &row.Resolved
	number := workload.Batch * (workload.Seq + workload.NewTokens)
	if workload.Strategy.Traits().Replicated {
		number *= row.gpus
	}
	return number
}

// SecondsPerToken makes steps of different batches comparable: seconds over
// the tokens of all GPUs. +Inf where the time is not known.
func (row *Row) SecondsPerToken() float64 {
	if row.StepSeconds == nil || row.Tokens() == 0 {
		return math.Inf(1)
	}
	return *row.StepSeconds / float64(row.Tokens())
}

// compare puts the best first: those that fit by time a token, then by what
// is left; then those that do not by what is missing; then those refused.
func compare(a, b *Row) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(order(a), order(b)),
		cmp.Compare(b.Headroom(), a.Headroom()),
	)
}

func rank(row *Row) int {
	switch {
	case row.Refused != nil:
		return 2
	case !row.Fits():
		return 1
	}
	return 0
}

func order(row *Row) float64 {
	if rank(row) > 0 {
		return 0
	}
	return row.SecondsPerToken()
}
