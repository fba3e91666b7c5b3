package anymemory

import (
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Arguments are the lower bounds of the largest share that hold for any
// assignment, for an instance whose own answer is for fewer maps.
func Arguments(in *instance.Instance) ([]instance.BoundValue, error) {
	sc, err := anywhere.New(in)
	if err != nil {
		return nil, err
	}
	a := search{problem: sc}
	a.average, a.at = sc.Average(sc.Moments())
	return a.bounds(), nil
}

// bounds are all arguments, for --explain.
func (a *search) bounds() []instance.BoundValue {
	share, c := a.problem.LargestItem()
	unit := instance.BoundValue{Name: "largest unit", Value: share.Float(), What: "what the devices hold without units"}
	if c >= 0 {
		unit.What = a.problem.NameOf(c)
	}
	out := []instance.BoundValue{unit, {Name: "average", Value: a.average, What: a.at}}
	if a.relaxed > 0 {
		out = append(out, instance.BoundValue{Name: "relaxed search", Value: a.relaxed, What: "units that differ little counted as the least of them"})
	}
	switch {
	case a.proved:
		out = append(out, instance.BoundValue{Name: "search", Value: a.value.Float(), What: "every smaller share was refuted"})
	case a.refuted > 0:
		out = append(out, instance.BoundValue{Name: "search", Value: a.refuted, What: "the largest share that was refuted"})
	}
	return out
}
