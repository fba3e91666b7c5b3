package chain

import "context"

// Bounds is the bound that needs no search, and its part that is one item's or
// group's own.
func Bounds(p Problem) (lower, unit Share, err error) {
	if floor := p.Floor; floor != nil { // as the search of runs that are not empty asks it
		p.Peak, p.Floor, p.Filled = floor, nil, false
	}
	in, err := newInstance(&p)
	if err != nil {
		return Share{}, Share{}, err
	}
	b := newTask(in, in.allFree()).bounds(&run{ctx: context.Background()})
	return b.lower(), b.unit, nil
}

// Optimal says that Value is the least there is: it meets LowerBound, exactly.
func (res *Result) Optimal() bool { return !res.LowerBound.less(res.Value) }
