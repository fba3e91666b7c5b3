package planner

import (
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// finite refuses costs that are no numbers, or negative: sums and comparisons
// with them mean nothing.
func finite(t *costmodel.Table) error {
	for u := range t.Units {
		w := &t.Units[u].Work
		for _, c := range []struct {
			name  string
			value float64
		}{
			{"forward", total(w.Forward)},
			{"backward", total(w.Backward)},
			{"token", total(w.Token)},
			{"update", w.Update},
			{"FLOPs", t.Units[u].FLOPs},
		} {
			if math.IsNaN(c.value) || math.IsInf(c.value, 0) || c.value < 0 {
				return fmt.Errorf("planner: unit %q: its %s cost is %v: costs must be finite and not negative", t.Units[u].Name, c.name, c.value)
			}
		}
	}
	return nil
}

// total is NaN, infinite or negative where a part is.
func total(p costmodel.Pass) float64 {
	if low := min(p.Products, p.Unaligned, p.Attention, p.Traffic, p.Strided, p.Kernels, p.Profiled); low < 0 {
		return low
	}
	return p.Products + p.Unaligned + p.Attention + p.Traffic + p.Strided + p.Kernels + p.Profiled
}

// finiteTimes refuses rates so small, or times so long, that a step has no
// finite length: no bound and no fixed point would mean anything.
func (p *Problem) finiteTimes() error {
	longest := 0.
	passes, tokens := steptime.Passes(p.Costs)
	unlike := p.unlike()
	for u := range p.Costs.Units {
		most := 0.
		for _, d := range unlike {
			s := steptime.Unit(p.Costs, p.Topology, d, u)
			most = max(most, passes*(s.Forward+s.Backward+s.Issue+s.IssueBack)+tokens*(s.Token+s.IssueToken)+s.Update)
		}
		longest += most
	}
	if !(longest <= longestStep) {
		return &steptime.Error{Msg: costmodel.Messagef("the time of a step is %v s where each unit is on its slowest device: no more than %v s can be compared; the devices' rates are too small", longest, longestStep)}
	}
	for i := range p.Topology.Links {
		l := &p.Topology.Links[i]
		if l.BytesPerSecond < slowestLink {
			return &steptime.Error{Msg: costmodel.Messagef("links[%d]: %v bytes/s from device %d to %d: a step over it has no time that can be compared (%v works; leave the link out where there is none)", i, l.BytesPerSecond, l.From, l.To, slowestLink)}
		}
	}
	return nil
}

// Bounds of what a step may take and a link may carry, in seconds and bytes a
// second: far past any machine, and far from the limits of a float64.
const (
	longestStep = 1e30
	slowestLink = 1e-3
)
