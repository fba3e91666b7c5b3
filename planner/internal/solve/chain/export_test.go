package chain

import "context"

// Bounds is the bound that needs no search, and its part that is one item's or
// group's own.
func Bounds(p Problem) (lower, unit Share, err error) {
	if floor := p.Floor; floor != nil { // as the search of runs that are not empty asks it
		p.Peak, p.Floor = func(d, a, b int, _ uint64) int64 { return floor(d, a, b) }, nil
	}
	in, err := newInstance(&p)
	if err != nil {
		return Share{}, Share{}, err
	}
	where := make([]int, len(in.clusters))
	for i := range where {
		where[i] = free
	}
	b := newTask(in, where).bounds(&run{ctx: context.Background()})
	return b.lower(), b.unit, nil
}
