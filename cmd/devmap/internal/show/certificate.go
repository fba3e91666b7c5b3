package show

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Certificate is the line that says how good the map is.
func (p *Printer) Certificate(s *planner.Solution) {
	d := &s.Devices[s.Bottleneck]
	if s.Objective == planner.Time {
		p.printf("step %s · lower bound %s (%s) · %s · largest share %.2f%% (GPU %d, %s) · imbalance %.3f\n",
			Seconds(s.Value), Seconds(s.LowerBound), s.Bound, s.Status, 100*s.LargestShare(), s.Bottleneck,
			sized(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes, d.Budget()), s.Imbalance())
		return
	}
	proof := fmt.Sprintf("lower bound %.2f%% (%s) · %s", 100*s.LowerBound, s.Bound, s.Status)
	if o := s.Offloaded; o != nil { // the status is that of what left, on the next line
		proof = fmt.Sprintf("lower bound for what stays %.2f%% (%s)", 100*o.Stays.LowerBound, o.Stays.Bound)
	}
	p.printf("largest share %.2f%% (GPU %d, %s) · imbalance %.3f · %s\n",
		100*s.Value, s.Bottleneck, sized(d.Predicted.PeakAllocatedBytes+d.Predicted.OverheadBytes, d.Budget()), s.Imbalance(), proof)
}

// Offloaded says what travels.
func (p *Printer) Offloaded(s *planner.Solution) {
	o := s.Offloaded
	if o == nil {
		return
	}
	from := ""
	switch {
	case o.FromDisk == o.Bytes:
		from = " from disk"
	case o.FromDisk > 0:
		from = " (" + costmodel.Bytes(o.FromDisk).String() + " of it from disk)"
	}
	p.printf("offloaded: %s; %v%s travel to the first GPU in each forward, and at least %v must · %s\n",
		Plural(o.Units, "unit"), costmodel.Bytes(o.Bytes), from, costmodel.Bytes(o.LowerBound), o.Status)
}
