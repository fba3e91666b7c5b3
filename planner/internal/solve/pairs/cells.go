package pairs

import "github.com/devmap-dev/devmap/planner/internal/solve/netlist"

// Cells tell the loads of a pair apart: as many as make so many labels with all states
// of a frontier, no fewer and no more than those.
type Cells struct{ Fewest, Most, Labels int }

func (cells Cells) of(frontier *netlist.Frontier) int {
	states := 0
	for _, count := range frontier.States {
		states += count
	}
	return max(cells.Fewest, min(cells.Most, cells.Labels/max(1, states)))
}
