package chain

import "context"

// Bounds returns the bound that needs no search, and its part from a single item or group.
func Bounds(p Problem) (lower, unit Share, err error) {
	if floor := p.Floor; floor != nil { // like the search for runs that are not empty
		p.Peak, p.Floor, p.Filled = floor, nil, false
	}
	in, err := newInstance(&p)
	if err != nil {
		return Share{}, Share{}, err
	}
	b := newTask(in, in.allFree()).bounds(&run{ctx: context.Background()})
	return b.lower(), b.unit, nil
}

// Optimal reports that Value equals LowerBound exactly, so that it is least.
func (res *Result) Optimal() bool { return !res.LowerBound.less(res.Value) }
