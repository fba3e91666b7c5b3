package anymemory

import (
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Arguments are the lower bounds of the largest share that hold for any
// assignment, for an instance whose own answer is for fewer maps.
func Arguments(in *instance.Instance) ([]instance.BoundValue, error) {
	problem, err := anywhere.New(in)
	if err != nil {
		return nil, err
	}
	state := search{problem: problem}
	state.average, state.at = problem.Average(problem.Moments())
	return state.bounds(), nil
}

// bounds are all arguments, for whoever asks why.
func (state *search) bounds() []instance.BoundValue {
	share, kind := state.problem.LargestItem()
	unit := instance.BoundValue{Name: "largest unit", Value: share.Float(), What: "what the devices hold without units"}
	if kind >= 0 {
		unit.What = state.problem.NameOf(kind)
	}
	out := []instance.BoundValue{unit, {Name: "average", Value: state.average, What: state.at}}
	if state.relaxed > 0 {
		out = append(out, instance.BoundValue{Name: "relaxed search", Value: state.relaxed, What: "units that differ little counted as the least of them"})
	}
	switch {
	case state.proved:
		out = append(out, instance.BoundValue{Name: "search", Value: state.value.Float(), What: "every smaller share was refuted"})
	case state.refuted > 0:
		out = append(out, instance.BoundValue{Name: "search", Value: state.refuted, What: "the largest share that was refuted"})
	}
	return out
}
