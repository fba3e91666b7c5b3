package boundwindow

import "github.com/devmap-dev/devmap/planner/internal/solve/netlist"

// Cones tell the windows that items have within a limit by their cones alone.
type Cones struct{ form *form }

// NewCones is nil where devices in use are of several kinds, or items too many;
// kind is the one in use.
func NewCones(nets *netlist.Netlist, before, after [][]int) (cones *Cones, kind int) {
	kind = onlyKind(nets)
	if kind < 0 {
		return nil, kind
	}
	return &Cones{newForm(nets, before, after, kind)}, kind
}

// Windows are the first and the last stage of each item in any contiguous
// placement whose loads are within the limit. An item that has none is after the
// last stage, or before the first.
func (cones *Cones) Windows(limit float64) (first, last []int) {
	within := cones.form.everywhere()
	cones.form.narrow(&within, limit)
	return within.first, within.last
}
