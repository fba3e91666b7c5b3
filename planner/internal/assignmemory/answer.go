package assignmemory

import (
	"cmp"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// answer returns the best map found, or the contiguous one if it is as good.
func (state *search) answer(start *instance.Answer) *instance.Answer {
	in := state.problem.In
	placement := state.mapOf()
	value := state.value.Float()
	if start != nil && !state.better(placement, start.Map) {
		placement, value = start.Map, start.Value
	}
	out := &instance.Answer{
		Map: placement, Tried: state.targets, Found: state.found(start), Bounds: state.arguments(),
		Claim: certificate.Claim{Value: value, Rounding: certificate.Exact, Stopped: state.stopped()},
	}
	for _, bound := range out.Bounds {
		if bound.Value > out.LowerBound {
			out.LowerBound, out.Bound = bound.Value, bound.Name
		}
	}
	if sent := in.SentNote(placement); sent != "" {
		if start != nil {
			sent += fmt.Sprintf(", %v under the best contiguous map (largest share %.2f%%)", costmodel.Bytes(in.Sent(start.Map)), 100*start.Value)
		}
		out.Notes = append(out.Notes, sent)
	}
	return out
}

// mapOf returns the best map, unit by unit; nil if there is none.
func (state *search) mapOf() devicemap.Map {
	if state.best == nil {
		return nil
	}
	state.load(state.best)
	placement := state.problem.MapOf(state.best)
	state.tidy(placement)
	state.value, state.squares = state.score() // after a stopped search, tidying may still lower both
	state.problem.Relabel(placement)
	return placement
}

// found says how the map was found.
func (state *search) found(start *instance.Answer) string {
	from := "from the contiguous optimum"
	if start == nil {
		from = "from a greedy map (the pins leave no contiguous one)"
	}
	if state.problem.TooLarge {
		return "contiguous search: the model and the devices are too many for a search of any assignment"
	}
	text := fmt.Sprintf("any assignment: local search %s (units moved and swapped), then branch and bound over the counts of %d kinds of units", from, len(state.problem.Kinds))
	switch {
	case state.proved:
		return text + ", which refuted every smaller share"
	case state.stopped():
		return text + ", which ran out of time"
	}
	return text + ", not needed: the bound is met"
}

// better reports that a map is better than another: a smaller largest share, then fewer bytes sent,
// then a smaller sum of squared shares.
func (state *search) better(placement, than devicemap.Map) bool {
	if state.best == nil {
		return false
	}
	state.load(state.problem.CountsOf(placement))
	value, squares := state.score()
	state.load(state.problem.CountsOf(than))
	other, others := state.score()
	if by := value.Cmp(other); by != 0 {
		return by < 0
	}
	in := state.problem.In
	return cmp.Or(cmp.Compare(in.Sent(placement), in.Sent(than)), cmp.Compare(squares, others)) < 0
}
