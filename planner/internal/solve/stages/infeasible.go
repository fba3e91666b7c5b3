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
func (e *InfeasibleError) Missing() float64 { return e.Needs - e.Capacity }

// Error implements error.
func (e *InfeasibleError) Error() string {
	what := "no straight pipeline keeps"
	if !e.Proved {
		what = "found no straight pipeline that keeps"
	}
	text := fmt.Sprintf("%s within %s a device on up to %d devices", what, size(e.Capacity), e.Devices)
	switch {
	case e.Enough > 0:
		text += fmt.Sprintf("; %d devices of that size do", e.Enough)
	case e.Node != "":
		text += fmt.Sprintf(", nor on any number of them: %q needs %s by itself for the micro-batches in flight (%d), %s more than there is",
			e.Node, size(e.Needs), e.InFlight, size(e.Missing()))
	}
	if e.Least > 0 {
		text += fmt.Sprintf("; %d devices need %s each", e.Devices, size(e.Least))
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
func (s *solver) explain(ctx context.Context, in *search) error {
	e := &InfeasibleError{Capacity: s.p.Capacity, Devices: s.p.Devices, Proved: in.f.whole}
	q := in.ask(ctx, math.Inf(1), len(s.p.Nodes))
	switch {
	case q.stopped:
		return e
	case q.reached():
		e.Enough = int(q.level[in.f.empty])
	default:
		q.blocked(e)
	}
	low, high := s.p.Capacity, 0.0
	for _, o := range in.view(1).nodes { // all in one stage
		high += o.least()
	}
	e.Least = high
	for high-low > precision*high {
		in.capacity = low + (high-low)/2
		q := in.ask(ctx, math.Inf(1), s.p.Devices)
		switch {
		case q.stopped:
			e.Least = 0
			return e
		case q.reached():
			high, e.Least = in.capacity, in.capacity
		default:
			low = max(in.capacity, min(q.nextMemory, high))
		}
	}
	return e
}

// blocked names the node that is the least too large for a stage of its own
// where the probe got to. One that no place has room for comes first.
func (q *probe) blocked(e *InfeasibleError) {
	e.Needs = math.Inf(1)
	name := func(v, y int) {
		e.Node, e.InFlight, e.Needs = q.p.Nodes[v].Name, y, q.search.view(y).nodes[v].least()
	}
	for v := range q.p.Nodes {
		if m := q.search.view(1).nodes[v].least(); m > q.capacity && (math.IsInf(e.Needs, 1) || m > e.Needs) {
			name(v, 1)
		}
	}
	if e.InFlight == 1 {
		e.Proved = true // no order helps it
		return
	}
	for i, below := range q.f.below {
		if i > 0 && q.level[i] == 0 {
			continue
		}
		for _, b := range below {
			y := int(q.level[i]) + 1
			if q.level[b.to] == 0 && q.search.view(y).nodes[b.node].least() < e.Needs {
				name(int(b.node), y)
			}
		}
	}
}
