package stages

import (
	"context"
	"fmt"
	"math"
)

// InfeasibleError says that no straight pipeline keeps within the capacity.
type InfeasibleError struct {
	Capacity float64 // bytes
	Devices  int
	// Proved: no down-set of the graph was left out of the search, so that
	// there is no pipeline. Otherwise none was found.
	Proved bool
	// Enough is the number of devices of this capacity that do; 0: no number
	// does, or, without a Node, the search for it was cut short.
	Enough int
	// Least is the smallest capacity in bytes with which Devices devices do, to
	// one part in 10⁹; 0 where the search for it was cut short.
	Least float64
	// Node is where it ends if Enough is 0: wherever it can be, Node keeps at
	// least InFlight micro-batches in flight and then needs Needs bytes by
	// itself, with the smallest of its choices.
	Node     string
	InFlight int
	Needs    float64
}

// Missing is what the capacity lacks for Node, in bytes.
func (err *InfeasibleError) Missing() float64 { return err.Needs - err.Capacity }

// Error implements error.
func (err *InfeasibleError) Error() string {
	what := "no straight pipeline keeps"
	if !err.Proved {
		what = "found no straight pipeline that keeps"
	}
	text := fmt.Sprintf("%s within %s a device on up to %d devices", what, size(err.Capacity), err.Devices)
	switch {
	case err.Enough > 0:
		text += fmt.Sprintf("; %d devices of that size do", err.Enough)
	case err.Node != "":
		text += fmt.Sprintf(", nor on any number of them: %q needs %s by itself for the micro-batches in flight (%d), %s more than there is",
			err.Node, size(err.Needs), err.InFlight, size(err.Missing()))
	}
	if err.Least > 0 {
		text += fmt.Sprintf("; %d devices need %s each", err.Devices, size(err.Least))
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

// explain says why nothing fits, by the memory alone.
func (call *solver) explain(ctx context.Context, in *search) error {
	err := &InfeasibleError{Capacity: call.problem.Capacity, Devices: call.problem.Devices, Proved: in.sets.Whole}
	attempt := in.ask(ctx, math.Inf(1), len(call.problem.Nodes))
	switch {
	case attempt.stopped:
		return err
	case attempt.reached():
		err.Enough = int(attempt.level[in.sets.Empty])
	default:
		attempt.blocked(err)
	}
	low, high := call.problem.Capacity, 0.0
	for _, opts := range in.view(1).Nodes { // all in one stage
		high += opts.Least()
	}
	err.Least = high
	for high-low > precision*high {
		in.capacity = low + (high-low)/2
		q := in.ask(ctx, math.Inf(1), call.problem.Devices)
		switch {
		case q.stopped:
			err.Least = 0
			return err
		case q.reached():
			high, err.Least = in.capacity, in.capacity
		default:
			low = max(in.capacity, min(q.nextMemory, high))
		}
	}
	return err
}

// blocked names the node that is the least too large for a stage of its own
// where the probe got to. One that no place has room for comes first.
func (attempt *probe) blocked(err *InfeasibleError) {
	err.Needs = math.Inf(1)
	name := func(node, stage int) {
		err.Node, err.InFlight, err.Needs = attempt.problem.Nodes[node].Name, stage, attempt.search.view(stage).Nodes[node].Least()
	}
	for node := range attempt.problem.Nodes {
		if memory := attempt.search.view(1).Nodes[node].Least(); memory > attempt.capacity && (math.IsInf(err.Needs, 1) || memory > err.Needs) {
			name(node, 1)
		}
	}
	if err.InFlight == 1 {
		err.Proved = true // no order helps it
		return
	}
	for i, below := range attempt.sets.Below {
		if i > 0 && attempt.level[i] == 0 {
			continue
		}
		for _, b := range below {
			stage := int(attempt.level[i]) + 1
			if attempt.level[b.To] == 0 && attempt.search.view(stage).Nodes[b.Node].Least() < err.Needs {
				name(int(b.Node), stage)
			}
		}
	}
}
