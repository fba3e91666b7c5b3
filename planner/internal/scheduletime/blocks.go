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
	low, high := make([]int, len(order)), make([]int, len(order)) // blocks of each GPU: too few, and the answer
	for gpu := range order {
		low[gpu], high[gpu] = -1, len(order[gpu])
		if search.spare(best, gpu) >= 0 {
			high[gpu] = 0
		}
	}
	for {
		again, middle, open := slices.Clone(none), make([]int, len(order)), false
		for gpu := range order {
			middle[gpu] = (low[gpu] + high[gpu] + 1) / 2 // the answer, if they are neighbours
			open = open || low[gpu]+1 < high[gpu]
			for _, block := range order[gpu][:middle[gpu]] {
				again[block] = true
			}
		}
		next, err := search.evaluate(from.Kind, from.cuts, again)
		if err != nil || !open {
			return next, err
		}
		for gpu := range order {
			if search.spare(next, gpu) >= 0 {
				high[gpu] = middle[gpu]
			} else {
				low[gpu] = middle[gpu]
			}
		}
	}
}

// byGain lists the blocks of each GPU by the bytes that recomputing them frees for a second.
func (search *search) byGain(from *Choice) ([][]int, error) {
	saved, err := search.Table(from.Kind, make([]bool, len(search.Blocks)))
	if err != nil {
		return nil, err
	}
	made, err := search.Table(from.Kind, slices.Repeat([]bool{true}, len(search.Blocks)))
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
