package chaintime

import (
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// placed is a device map with its cost.
type placed struct {
	items  []int // device of each item
	groups []int
	cost   cost  // with the update in its time
	update int64 // of the slowest device
	order  int   // how many cuts go down in device number
}

func (a *placed) less(b *placed) bool {
	if a.cost != b.cost {
		return a.cost.less(b.cost)
	}
	return a.order < b.order
}

// simpler reports fewer bytes and cuts.
func (a *placed) simpler(b *placed) bool {
	x, y := a.cost, b.cost
	x.time, y.time = 0, 0
	return x.less(y)
}

// unitMap is the map of units.
func (t *fixedPoint) unitMap(m *placed) devicemap.Map {
	out := make(devicemap.Map, len(t.peaks.GroupOf))
	for i, d := range m.items {
		for _, u := range t.peaks.Order[t.peaks.Start[i]:t.peaks.Start[i+1]] {
			out[u] = devicemap.Device(d)
		}
	}
	for g, d := range m.groups {
		for _, u := range t.peaks.Groups[g] {
			out[u] = devicemap.Device(d)
		}
	}
	return out
}
