package stages

import (
	"context"
	"fmt"
	"math"
)

// InfeasibleError says that no pipeline keeps within the capacity.
type InfeasibleError struct {
	Capacity float64 // bytes
	Devices  int
	// Proved: no down-set of the graph was left out of the search, so that
	// there is no pipeline. Otherwise none was found.
	Proved bool
	// Enough is the number of devices of this capacity that do; 0: none does,
	// or the search for it was cut short.
	Enough int
	// Node, if it is not empty, alone needs Needs bytes a device, at the
	// degree and with the choice that need the least: no number of devices does.
	Node  string
	Needs float64
	// Least is a capacity in bytes with which Devices devices do, the smallest
	// to one part in 10⁹ where no down-set was left out; 0 where the search for
	// it was cut short.
	Least float64
}

// Error implements error.
func (err *InfeasibleError) Error() string {
	what := "no pipeline keeps"
	if !err.Proved {
		what = "found no pipeline that keeps"
	}
	text := fmt.Sprintf("%s within %s a device on up to %d devices", what, size(err.Capacity), err.Devices)
	switch {
	case err.Enough > 0:
		text += fmt.Sprintf("; %d devices of that size do", err.Enough)
	case err.Node != "":
		text += fmt.Sprintf(", nor on any number of them: %q needs %s by itself, %s more than there is", err.Node, size(err.Needs), size(err.Needs-err.Capacity))
	}
	if err.Least > 0 {
		text += fmt.Sprintf("; %d devices of %s each do", err.Devices, size(err.Least))
	}
	return text
}

// size is b bytes, with digits enough to tell near ones apart.
func size(b float64) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.2f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.3f GiB", b/(1<<30))
}

// explain says why nothing fits, by the memory alone. line are the prefixes of
// one order, which are quick to ask; all is the widest family there was time for.
func (call *solver) explain(ctx context.Context, line, all *search) error {
	err := &InfeasibleError{Capacity: call.Capacity, Devices: call.Devices, Proved: all.sets.Whole}
	if node, needs := call.largest(); needs > call.Capacity*(1+rounding) {
		err.Node, err.Needs, err.Proved = call.Nodes[node].Name, needs, true
	} else if more := all.with(call.Replicas*call.Tensor[len(call.Tensor)-1], call.Capacity).ask(ctx, math.Inf(1)); more.reached() {
		err.Enough = math.MaxInt
		for _, end := range more.labels[all.sets.Empty] {
			err.Enough = min(err.Enough, int(end.devices))
		}
	}
	low, high := max(call.Capacity, err.Needs*(1-precision)), 0.0
	for node := range call.Nodes { // all in one stage
		high += call.leastHold(node) * float64(call.Replicas)
	}
	for _, in := range []*search{line, all} {
		// What one family needs bounds the next, which most often needs the same.
		try := high * (1 - precision)
		for from := low; high-from > precision*high; try = from + (high-from)/2 {
			switch attempt := in.with(call.Devices, try).ask(ctx, math.Inf(1)); {
			case attempt.stopped:
				return err
			case attempt.reached():
				high, err.Least = try, try
			default:
				from = try
			}
		}
	}
	return err
}

// with is the search with other devices.
func (within *search) with(devices int, capacity float64) *search {
	other, problem := *within, *within.Problem
	problem.Devices, problem.Capacity = devices, capacity
	other.Problem = &problem
	other.met, other.walk, other.solved = make([]int32, len(within.met)), 0, make(map[stageKey]timeRange)
	return &other
}

// largest is the node that alone needs the most, wherever it is, and what it
// needs with one micro-batch in flight.
func (problem *Problem) largest() (node int, needs float64) {
	for at := range problem.Nodes {
		alone := math.Inf(1)
		for tensor, choices := range problem.Nodes[at].Choices {
			if problem.Tensor[tensor] > problem.Devices {
				break
			}
			for i := range choices {
				alone = min(alone, choices[i].InFlight+choices[i].Fixed)
			}
		}
		if alone > needs {
			node, needs = at, alone
		}
	}
	return node, needs
}
