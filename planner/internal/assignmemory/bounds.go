package assignmemory

import (
	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// bounds holds lower bounds of the largest share that hold for any assignment.
type bounds struct {
	unit       chain.Share // the largest item's share
	item       instance.BoundValue
	moments    []assignment.MemoryMoment // moments with the best average bounds
	average    float64                   // the best average bound
	at         string                    // the moment of that bound
	infeasible float64                   // the search proved that no map has a smaller share
	relaxed    float64                   // the same proof for the relaxed problem
}

// newBounds returns the bounds that need no search.
func newBounds(problem *assignment.Problem, all []assignment.MemoryMoment) bounds {
	share, kind := problem.LargestItem()
	out := bounds{unit: share, item: instance.BoundValue{Name: "largest unit", Value: share.Float(), What: "what the devices hold without units"}}
	if kind >= 0 {
		out.item.What = problem.NameOf(kind)
	}
	out.average, out.at = problem.Average(all)
	return out
}

// lower returns the best bound so far.
func (known *bounds) lower() float64 {
	return max(known.unit.Float(), known.average, known.infeasible, known.relaxed)
}

// Arguments returns the lower bounds of the largest share that hold for any assignment. The
// instance may allow fewer maps.
func Arguments(in *instance.Instance) ([]instance.BoundValue, error) {
	problem, err := assignment.New(in)
	if err != nil {
		return nil, err
	}
	state := search{bounds: newBounds(problem, problem.Moments())}
	return state.arguments(), nil
}

// arguments lists all bounds.
func (state *search) arguments() []instance.BoundValue {
	out := []instance.BoundValue{state.item, {Name: "average", Value: state.average, What: state.at}}
	if state.relaxed > 0 {
		out = append(out, instance.BoundValue{Name: "relaxed search", Value: state.relaxed, What: "units that alternate in any order, or those that differ little as one kind"})
	}
	switch {
	case state.proved:
		out = append(out, instance.BoundValue{Name: "search", Value: state.value.Float(), What: "every smaller share was refuted"})
	case state.infeasible > 0:
		out = append(out, instance.BoundValue{Name: "search", Value: state.infeasible, What: "the largest share that was refuted"})
	}
	return out
}
