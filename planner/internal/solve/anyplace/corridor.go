package anyplace

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
	"github.com/devmap-dev/devmap/planner/internal/solve/stagesearch"
)

const (
	// corridorWork is what is done in a round, corridorStates and corridorLabels what the
	// shortest walk has at most: states of a step, and labels in all. Few walks have so
	// many labels as they may, and answers that are near the least are told apart by
	// few of many.
	corridorWork   = 125_000_000
	corridorStates = 100
	corridorLabels = 4_000_000
	mostLabels     = 32_000_000
)

// corridor divides pairs of an answer whole, however wide they are: of all states of a
// walk it keeps those from which the rest of the answer is the cheapest (a beam, as in
// corridor methods: Sniedovich and Voß 2006), and each time takes another order. Narrow
// walks are quick, wide ones find more: each width has the same part of the work, as runs
// of annealing have.
func (find *finder) corridor(ctx context.Context, from member) {
	if find.devices < 2 {
		return
	}
	find.unit, find.squarings = from.value, steep
	find.refresh(from.place)
	find.forget()
	find.note()
	divide, all := find.split, slices.Repeat([]bool{true}, len(find.Wires))
	order, cells := divide.order, divide.cells
	defer func() { divide.order, divide.cells, divide.beside = order, cells, 0 }()
	for stop := divide.Work + corridorWork; divide.Work < stop && !find.over(ctx); {
		if divide.order = find.AnyThinOrder(ctx, all, find.rng); divide.order == nil {
			break
		}
		find.walks++
		times := stagesearch.Luby(find.walks)
		divide.beside = corridorStates * times
		divide.cells = pairs.Cells{Fewest: cells.Fewest / 16, Most: regionCells, Labels: min(mostLabels, corridorLabels*times)}
		device, other := find.twoDevices()
		divide.divide(ctx, find.annealer, device, other, nil)
		divide.Work += len(find.Nodes) * len(find.Nodes)
	}
	find.note()
	find.keep("pairs of devices divided anew, all that they hold beside how they hold it")
}
