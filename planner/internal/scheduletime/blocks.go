package scheduletime

import (
	"cmp"
	"slices"
)

// fewest recomputes, on each GPU, as few blocks as it needs to fit. A GPU's memory depends on its
// own blocks alone, so that all GPUs are bisected at the same time. Blocks that free most for their
// time come first.
func (search *search) fewest(from *Choice) (*Choice, error) {
	if len(search.Blocks) == 0 {
		return from, nil
	}
	order, err := search.byGain(from)
	if err != nil {
		return nil, err
	}
	none := make([]bool, len(search.Blocks))
	best, err := search.evaluate(from.Kind, from.cuts, none)
	if err != nil || best.Fits() {
		return best, err
	}
	counts := make([]bisection, len(order))
	for gpu := range order {
		counts[gpu] = bisection{-1, len(order[gpu])}
		if best.Devices[gpu].HeadroomBytes >= 0 {
			counts[gpu].high = 0
		}
	}
	for {
		again, open := slices.Clone(none), false
		for gpu, count := range counts {
			open = open || count.open()
			for _, block := range order[gpu][:count.middle()] {
				again[block] = true
			}
		}
		next, err := search.evaluate(from.Kind, from.cuts, again)
		if err != nil || !open {
			return next, err
		}
		for gpu := range counts {
			counts[gpu].narrow(next.Devices[gpu].HeadroomBytes >= 0)
		}
	}
}

// bisection is a search for the number of blocks that a GPU recomputes: low is too few, and high is
// the answer once they are neighbours.
type bisection struct{ low, high int }

func (count *bisection) open() bool { return count.low+1 < count.high }

// middle is the number to try next, the answer if there is one.
func (count *bisection) middle() int { return (count.low + count.high + 1) / 2 }

// narrow records whether the GPU fits with the middle.
func (count *bisection) narrow(fits bool) {
	switch {
	case !count.open():
	case fits:
		count.high = count.middle()
	default:
		count.low = count.middle()
	}
}

// byGain lists the blocks of each GPU by the bytes that recomputing them frees for a second.
func (search *search) byGain(from *Choice) ([][]int, error) {
	all := slices.Repeat([]bool{true}, len(search.Blocks))
	saved, err := search.Table(from.Kind, make([]bool, len(search.Blocks)))
	if err != nil {
		return nil, err
	}
	made, err := search.Table(from.Kind, all)
	if err != nil {
		return nil, err
	}
	out := make([][]int, len(search.Topology.Devices))
	gain := make([]float64, len(search.Blocks))
	for block, unit := range search.Blocks {
		gpu := int(from.Map[unit])
		before, after := unitTimes(saved, search.Topology, gpu, unit), unitTimes(made, search.Topology, gpu, unit)
		freed := unitBytes(&saved.Units[unit]).all() - unitBytes(&made.Units[unit]).all()
		gain[block] = float64(freed) / max(1e-12, after.input+after.weight-before.input-before.weight)
		out[gpu] = append(out[gpu], block)
	}
	for _, blocks := range out {
		slices.SortStableFunc(blocks, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	}
	return out, nil
}
