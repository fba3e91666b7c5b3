package anymemory

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// answer is the best map found, or the contiguous one where it is as good.
func (a *anySearch) answer(start *instance.Answer) *instance.Answer {
	in := a.sc.In
	m, value := a.mapOf(), a.value.Float()
	if start != nil && !a.better(m, start.Map) {
		m, value = start.Map, start.Value
	}
	out := &instance.Answer{
		Map: m, Tried: a.targets, Found: a.found(start), Bounds: a.bounds(),
		Claim: certificate.Claim{Value: value, Rounding: certificate.Exact, Stopped: a.stopped()},
	}
	for _, b := range out.Bounds {
		if b.Value > out.LowerBound {
			out.LowerBound, out.Bound = b.Value, b.Name
		}
	}
	if sent := in.SentNote(m); sent != "" {
		if start != nil {
			sent += fmt.Sprintf(", %v under the best contiguous map (largest share %.2f%%)", costmodel.Bytes(in.Sent(start.Map)), 100*start.Value)
		}
		out.Notes = append(out.Notes, sent)
	}
	return out
}

// mapOf is the best map, unit by unit.
func (a *anySearch) mapOf() devicemap.Map {
	if a.best == nil {
		return nil
	}
	a.load(a.best)
	m := a.sc.mapOf(a.best)
	a.tidy(m)
	a.sc.relabel(m)
	return m
}

// found says how the map was found, and why so.
func (a *anySearch) found(start *instance.Answer) string {
	from := "from the contiguous optimum"
	if start == nil {
		from = "from a greedy map (the pins leave no contiguous one)"
	}
	if a.sc.tooLarge {
		return "contiguous search: the model and the devices are too many for a search of any assignment"
	}
	s := fmt.Sprintf("any assignment: local search %s (units moved and swapped), then branch and bound over the counts of %d kinds of units", from, len(a.sc.classes))
	switch {
	case a.proved:
		return s + ", which refuted every smaller share"
	case a.stopped():
		return s + ", which ran out of time"
	}
	return s + ", not needed: the bound is met"
}
