package planner

import (
	"context"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// What the tests of bounds ask of the solvers' parts, so that each is held to
// the truth by itself and not through an answer.

// Paced are the sums of a map at its own pace and at every other of so many
// passes, in seconds.
func (p *Problem) Paced(place []int) (own float64, all []float64) {
	t := newNaiveStep(p.bare(), nil, pace{})
	passes := len(place)
	if t.train {
		passes *= 2
	}
	for micro := range passes + 1 {
		for token := range len(place) + 1 {
			for _, host := range []bool{false, true} {
				all = append(all, t.sumAt(pace{micro, token, host}, place))
			}
		}
	}
	return t.sumOf(place), all
}

// bare is a layout of units alone.
func (p *Problem) bare() *layout {
	return &layout{p: p, groupOf: make([]int, len(p.Costs.Units)), start: []int{0}}
}

// NaiveBounds are the steps that no map at all is below, at a few paces, and
// the update that no slowest device is below, in seconds.
func (p *Problem) NaiveBounds() (steps []float64, update float64, err error) {
	solver, err := p.timedSolver(context.Background())
	if err != nil {
		return nil, 0, err
	}
	n, ok := solver.(*naive)
	if !ok {
		return nil, 0, fmt.Errorf("%T is no search for a device map", solver)
	}
	units := len(p.Costs.Units)
	for _, c := range []pace{{}, {host: true}, {micro: 2 * units, token: units, host: true}, {micro: units / 2, token: units / 2}} {
		s := n.searches[0].at(newNaiveStep(n.l, n.pins, c))
		steps, update = append(steps, s.secondsOf(s.anywhere())), s.secondsOf(s.floor())
	}
	return steps, update, nil
}

// AnyBounds are the bounds of the largest share of any assignment.
func (p *Problem) AnyBounds(ctx context.Context) (map[string]float64, error) {
	sc, err := newScatter(p)
	if err != nil {
		return nil, err
	}
	a := newAnySearch(ctx, sc, Settings{})
	out := map[string]float64{"largest unit": a.unit.Float(), "average": a.average}
	a.relax()
	out["relaxed search"] = a.relaxed
	return out, nil
}

// Spare is the least that any moment of the step leaves of the devices' room,
// under caps of a share: not negative where a map has that share.
func (p *Problem) Spare(share float64) (int64, error) {
	sc, err := newScatter(p)
	if err != nil {
		return 0, err
	}
	least := int64(math.MaxInt64)
	for _, m := range sc.moments() {
		least = min(least, m.spare(sc, sc.caps(share)))
	}
	return least, nil
}

// WeightBound is the bound of an interleaved pipeline's largest share.
func (p *Problem) WeightBound() (float64, error) {
	l, _, err := p.layout()
	if err != nil {
		return 0, err
	}
	return l.weightBound(), nil
}

// LeavingAverage is the share that no map is below, whatever leaves.
func (p *Problem) LeavingAverage() (float64, error) {
	s, err := newLeaving(p)
	if err != nil {
		return 0, err
	}
	return s.average(), nil
}

// BareSaved is where the items of a pipeline begin, and what each saves of a
// micro-batch wherever a cut is.
func (p *Problem) BareSaved() (items []int, saved []int64, err error) {
	l, _, err := p.layout()
	if err != nil {
		return nil, nil, err
	}
	for i := range len(l.start) - 1 {
		saved = append(saved, l.bareSaved(i))
	}
	return l.start, saved, nil
}

// Refutes asks whether some map of any form has all shares below a limit, and
// gives what is then said of every map: its bound, and whether the best map
// that was known before is said to be the best there is.
func (p *Problem) Refutes(ctx context.Context, limit float64) (no bool, bound float64, proved bool, err error) {
	sc, err := newScatter(p)
	if err != nil {
		return false, 0, false, err
	}
	a := newAnySearch(ctx, sc, Settings{})
	a.greedy()
	const one = 1 << 40
	v := a.ask(chain.Share{Peak: int64(limit * one), Budget: one}, 1_000_000)
	return v == refuted, max(a.average, a.refuted), a.proved, nil
}

// Rough is the answer where the tables of the search for the shortest step
// would be too large, and the search's own.
func (p *Problem) Rough(ctx context.Context, devices int) (rough, searched *Solution, err error) {
	solver, err := p.timedSolver(ctx)
	if err != nil {
		return nil, nil, err
	}
	a, err := solver.shortest(ctx, p.caps(1))
	if err != nil {
		return nil, nil, err
	}
	if searched, err = p.timedSolution(a); err != nil {
		return nil, nil, err
	}
	if pipes, ok := solver.(*pipes); ok {
		a, err = pipes.balanced(ctx, p.caps(1))
	} else {
		a, err = (&fewer{p, devices}).shortest(ctx, p.caps(1))
	}
	if err != nil {
		return nil, nil, err
	}
	rough, err = p.timedSolution(a)
	return rough, searched, err
}
