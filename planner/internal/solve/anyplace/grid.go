package anyplace

import (
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// grid are the cells of a state: loads of the first device, and where capacities are in
// the way its bytes.
type grid struct {
	cells, buckets int
	load, bytes    float64 // cells and buckets for one of each
}

// put keeps a label in its cell, where the other device has least.
func (divide *splitter) put(grid *grid, state int32, next label, from int32) {
	bucket := int(state) * grid.buckets
	if grid.buckets > 1 {
		bucket += min(int(next.bytes*grid.bytes), grid.buckets-1)
	}
	cell := min(int(next.one*grid.load), grid.cells-1)
	span := &divide.spans[bucket]
	span[0], span[1] = min(span[0], cell), max(span[1], cell+1)
	at := bucket*grid.cells + cell
	if old := &divide.kept[at]; next.two < old.two || (next.two == old.two && next.one < old.one) {
		*old, divide.from[at] = next, from
	}
}

// nothing is a span of no cells, nobody a label that any other is better than.
var (
	nothing = [2]int{math.MaxInt, 0}
	nobody  = label{math.Inf(1), math.Inf(1), 0}
)

// collect takes the labels that no other beats in both loads.
func (divide *splitter) collect(step, states int, grid *grid, labels []label, start []int32) ([]label, []int32) {
	labels, start, divide.trace[step] = labels[:0], start[:0], divide.trace[step][:0]
	for state := range states {
		start = append(start, int32(len(labels)))
		for bucket := state * grid.buckets; bucket < (state+1)*grid.buckets; bucket++ {
			least, span := math.Inf(1), divide.spans[bucket]
			divide.work += max(0, span[1]-span[0])
			for at := bucket*grid.cells + span[0]; span[1] > 0 && at < bucket*grid.cells+span[1]; at++ {
				if divide.kept[at].two < least {
					least = divide.kept[at].two
					labels = append(labels, divide.kept[at])
					divide.trace[step] = append(divide.trace[step], divide.from[at])
				}
				divide.kept[at] = nobody
			}
			divide.spans[bucket] = nothing
		}
	}
	return labels, append(start, int32(len(labels)))
}

// byteBuckets are what bytes are told apart by, where capacities are in the way.
const byteBuckets = 16

// makeRoom lays out the cells: as many as the effort allows, and no fewer than usual.
func (divide *splitter) makeRoom(frontier *netlist.Frontier, pair *pair) grid {
	const finest = 1 << 14
	widest, all := 0, 0
	for _, count := range frontier.States {
		widest = max(widest, count)
		all += count
	}
	grid := grid{cells: min(max(divide.cells, divide.effort/max(1, all)), max(divide.cells, finest)), buckets: 1}
	if pair.tight() {
		grid.buckets = byteBuckets
		grid.cells = max(1, grid.cells/byteBuckets)
		if most := min(pair.roomOne, pair.all); most > 0 {
			grid.bytes = byteBuckets / most * (1 - 1e-12)
		}
	}
	grid.load = float64(grid.cells) / pair.limit * (1 - 1e-12)
	for len(divide.kept) < widest*grid.cells*grid.buckets {
		divide.kept = append(divide.kept, nobody)
		divide.from = append(divide.from, 0)
	}
	for len(divide.spans) < widest*grid.buckets {
		divide.spans = append(divide.spans, nothing)
	}
	for len(divide.trace) < len(frontier.Order) {
		divide.trace = append(divide.trace, nil)
	}
	return grid
}
