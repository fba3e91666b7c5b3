package planner

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// InfeasibleError says that no map fits, or that none was found that does.
type InfeasibleError struct {
	Best *Solution // the map that comes nearest
	// Form says which maps were searched, as words that follow a number of
	// devices: " in device order, a run of layers each".
	Form string
	// Proved: no map of this form fits at all.
	Proved bool
	// Needed and Budget are those of the worst device.
	Worst          int
	Needed, Budget int64
	// TooLarge is a unit that fits on no device by itself; empty otherwise.
	TooLarge string
	// TooLargeNeeds is what it needs at least, MostBudget the largest budget.
	TooLargeNeeds, MostBudget int64
	// Offload says what is missing though units may leave the devices.
	Offload string
	// Devices is the least number of devices like the first on which it
	// fits; 0: not even on many.
	Devices int
}

// Error implements error: the arithmetic, and the ways out that the planner
// knows.
func (e *InfeasibleError) Error() string {
	var b strings.Builder
	n := len(e.Best.Devices)
	if e.Proved {
		fmt.Fprintf(&b, "it does not fit on %s%s: ", devices(n), e.Form)
	} else {
		fmt.Fprintf(&b, "no placement that fits was found (on %s%s; that there is none is not proved): ", devices(n), e.Form)
	}
	w := &e.Best.Devices[e.Worst]
	fmt.Fprintf(&b, "in the best map device %d needs %v at its peak (%s) and may hold %v, so %v are missing",
		e.Worst, costmodel.Bytes(e.Needed), w.Predicted.PeakAt, costmodel.Bytes(e.Budget), costmodel.Bytes(e.Needed-e.Budget))
	if e.Offload != "" {
		b.WriteString("; " + e.Offload)
	}
	switch {
	case e.TooLarge != "":
		fmt.Fprintf(&b, "; %q alone needs more than any device has", e.TooLarge)
		if e.TooLargeNeeds > 0 {
			fmt.Fprintf(&b, ": %v, and the largest budget is %v", costmodel.Bytes(e.TooLargeNeeds), costmodel.Bytes(e.MostBudget))
		}
	case e.Devices > 0:
		such := "such devices"
		if first := &e.Best.Devices[0]; slices.ContainsFunc(e.Best.Devices, func(d devicemap.Prediction) bool { return d.Budget() != first.Budget() }) {
			such = "devices like the first"
		}
		fmt.Fprintf(&b, "; %d %s are enough", e.Devices, such)
	}
	return b.String()
}

// form names the maps that the problem's answer is sought among: a refusal is
// about these and no others.
func (p *Problem) form() string {
	var text string
	switch {
	case p.Costs.Workload.Strategy.Traits().Replicated:
		text = ", each of which runs the whole model"
	case p.piped() && p.schedule().Chunks > 1:
		text = fmt.Sprintf(" as a pipeline of %d runs each, in device order", p.schedule().Chunks)
	case p.piped():
		text = " as a pipeline with its stages in device order"
	case p.Anywhere:
		text = ", whichever layers each takes"
	case len(p.Topology.Devices) > 1:
		text = " in device order, a run of layers each"
	}
	if len(p.Pins)+len(p.Together) > 0 {
		text += " and with what --pin and --together ask for"
	}
	return text
}

func costText(device int, need, budget int64) string {
	return fmt.Sprintf("device %d still needs %v and may hold %v, so %v are missing", device, costmodel.Bytes(need), costmodel.Bytes(budget), costmodel.Bytes(need-budget))
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

// infeasible works out what would be enough.
func (p *Problem) infeasible(ctx context.Context, s *Solution) error {
	w := &s.Devices[s.Bottleneck]
	e := &InfeasibleError{
		Best: s, Form: p.form(), Proved: s.LowerBound > 1, Worst: s.Bottleneck, Budget: w.Budget(),
		Needed: w.Predicted.PeakAllocatedBytes + w.Predicted.OverheadBytes,
	}
	e.TooLarge, e.TooLargeNeeds = p.tooLarge(ctx)
	for d := range p.Topology.Devices {
		e.MostBudget = max(e.MostBudget, p.Topology.Devices[d].Budget())
	}
	// A cost table is of one number of stages or ranks.
	if e.TooLarge == "" && len(p.Pins) == 0 && p.Costs.Workload.World == 0 {
		e.Devices = p.enough(ctx)
	}
	return e
}

// tooLarge names a set of units that must share a device and fit on none, and
// the least that they need on one; none where the context ends before.
func (p *Problem) tooLarge(ctx context.Context) (string, int64) {
	l, _, err := p.layout()
	if err != nil {
		return "", 0
	}
	if p.piped() && p.schedule().Chunks > 1 {
		return "", 0 // no unit is alone on a device that has several runs
	}
	alone := func(a, b int, groups uint64) (need int64, fits bool) {
		need = math.MaxInt64
		for d := range l.device {
			peak := l.peak(d, a, b, groups)
			if l.stages != nil { // a longer stage may hold less
				peak = l.stageFloor(d, a, b)
			}
			if need = min(need, peak); peak <= p.Topology.Devices[d].Budget() {
				return need, true
			}
		}
		return need, false
	}
	for g, units := range l.groups {
		if need, fits := alone(0, 0, 1<<g); !fits {
			return p.Graph.Units[units[len(units)-1]].Name, need
		}
	}
	for i := range len(l.start) - 1 {
		if i%64 == 63 && ctx.Err() != nil {
			break
		}
		if need, fits := alone(i, i+1, 0); !fits {
			return p.Graph.Units[l.nameOf(i)].Name, need
		}
	}
	return "", 0
}

// enough finds the least number of devices like the first that would do: it
// doubles, then bisects, as one more device never makes it worse.
func (p *Problem) enough(ctx context.Context) int {
	fits := func(n int) bool {
		return p.valueOn(ctx, slices.Repeat(p.Topology.Devices[:1], n)) <= 1
	}
	lo := len(p.Topology.Devices)
	hi := 2 * lo
	for ; !fits(hi); hi *= 2 {
		if hi > 1024 || ctx.Err() != nil {
			return 0
		}
		lo = hi
	}
	for lo+1 < hi {
		if mid := (lo + hi) / 2; fits(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
