package stages

import (
	"context"
	"fmt"
	"math"
)

// InfeasibleError says that no pipeline is within the capacity.
type InfeasibleError struct {
	Capacity float64 // bytes
	Devices  int
	// Proved: the search covered every down-set of the graph, so no pipeline exists. Otherwise none
	// was found.
	Proved bool
	// Enough is the number of devices of this capacity that would work; 0: none does, or the search
	// for it was stopped.
	Enough int
	// Node, if not empty, alone needs Needs bytes per device with its best degree and choice. No
	// number of devices is then enough.
	Node  string
	Needs float64
	// Least is a capacity in bytes that would work with Devices devices; 0 if the search for it was
	// stopped. If the search covered every down-set, it is the smallest to one part in 10⁹.
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

// size formats b bytes with enough digits to distinguish close values.
func size(b float64) string {
	if b < 1<<30 {
		return fmt.Sprintf("%.2f MiB", b/(1<<20))
	}
	return fmt.Sprintf("%.3f GiB", b/(1<<30))
}

// explain says why no pipeline fits, by memory alone. line has the prefixes of one order, which are
// quick to search. all is the widest family for which there was time.
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
		// The need of one family bounds that of the next, which is often the same.
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

// with returns the search with other devices.
func (within *search) with(devices int, capacity float64) *search {
	other, problem := *within, *within.Problem
	problem.Devices, problem.Capacity = devices, capacity
	other.Problem = &problem
	other.met, other.walk, other.solved = make([]int32, len(within.met)), 0, make(map[stageKey]timeRange)
	return &other
}

// largest returns the node that alone needs the most bytes on its best devices, and its need with
// one micro-batch in flight.
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
