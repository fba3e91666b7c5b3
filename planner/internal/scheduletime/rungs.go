package scheduletime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Cuts for less memory often lead to a shorter step than those for all of it. The rungs of a ladder
// are the powers of rung, in bytes. So searches with about the same memory begin with the same cuts.
const (
	rung  = 1.05
	rungs = 24 // tried, over the number of GPUs
)

// fromRungs looks for orders of a place. It begins with the cuts of a published order for the rungs below
// what a choice needs, with no block recomputed.
func (search *search) fromRungs(at place, found *Choice) {
	whole, tried := search.Question, [][]int{}
	less, largest := *whole, 0.
	for i := range whole.Topology.Devices {
		largest = max(largest, float64(whole.Topology.Devices[i].Budget()))
	}
	highest := math.Ceil(math.Log(largest*found.Share) / math.Log(rung))
	for count := range max(1, rungs/len(whole.Topology.Devices)) {
		less.Topology = Part(whole.Topology, math.Pow(rung, highest-float64(count+1))/largest)
		search.Question = &less
		start := search.quickest(at)
		search.Question = whole
		if start == nil || search.stopped() || slices.ContainsFunc(tried, func(cuts []int) bool { return slices.Equal(cuts, start.cuts) }) {
			continue
		}
		tried = append(tried, start.cuts)
		for _, form := range forms {
			if form.place == at {
				search.turns(form, start.cuts, start.again, nil, effort)
			}
		}
	}
}

// quickest returns the quickest published order of a place that fits; nil: none.
func (search *search) quickest(at place) (best *Choice) {
	again := make([]bool, len(search.Blocks))
	for _, kind := range search.Kinds {
		if formOf(kind).place != at {
			continue
		}
		if prices, err := search.prices(kind, again); err == nil {
			if found, err := search.improve(kind, prices.even(search.schedule(kind)), again); err == nil && found.Fits() && found.better(best) {
				best = found
			}
		}
	}
	return best
}

// Part returns the GPUs with a part of all budgets.
func Part(topology *costmodel.Topology, part float64) *costmodel.Topology {
	out := *topology
	out.Devices = slices.Clone(out.Devices)
	for i := range out.Devices {
		device := &out.Devices[i]
		device.ReservedBytes = device.CapacityBytes - int64(part*float64(device.Budget()))
	}
	return &out
}
