package anymemory

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// answer is the best map found, or the contiguous one where it is as good.
func (a *search) answer(start *instance.Answer) *instance.Answer {
	in := a.problem.In
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
func (a *search) mapOf() devicemap.Map {
	if a.best == nil {
		return nil
	}
	a.load(a.best)
	m := a.problem.MapOf(a.best)
	a.tidy(m)
	a.problem.Relabel(m)
	return m
}

// found says how the map was found, and why so.
func (a *search) found(start *instance.Answer) string {
	from := "from the contiguous optimum"
	if start == nil {
		from = "from a greedy map (the pins leave no contiguous one)"
	}
	if a.problem.TooLarge {
		return "contiguous search: the model and the devices are too many for a search of any assignment"
	}
	s := fmt.Sprintf("any assignment: local search %s (units moved and swapped), then branch and bound over the counts of %d kinds of units", from, len(a.problem.Kinds))
	switch {
	case a.proved:
		return s + ", which refuted every smaller share"
	case a.stopped():
		return s + ", which ran out of time"
	}
	return s + ", not needed: the bound is met"
}

// better reports that a map comes before another: a smaller largest share,
// then a smaller sum of squared shares, then fewer bytes sent.
func (a *search) better(m, than devicemap.Map) bool {
	if a.best == nil {
		return false
	}
	a.load(a.problem.CountsOf(m))
	value, squares := a.score()
	a.load(a.problem.CountsOf(than))
	other, others := a.score()
	if by := value.Cmp(other); by != 0 {
		return by < 0
	}
	switch {
	case squares < others*(1-instance.Tolerance):
		return true
	case squares > others*(1+instance.Tolerance):
		return false
	}
	return a.problem.In.Sent(m) < a.problem.In.Sent(than)
}
