package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// tiers gives units that left their device, the first that has any, and the
// time to copy their parameters there in each forward. It is false where a
// tier's rate is unknown.
func (s *timing) tiers() bool {
	main := -1
	for _, d := range s.place {
		if d >= 0 && (main < 0 || d < main) {
			main = d
		}
	}
	s.copied = make([]float64, len(s.place))
	place := slices.Clone(s.place)
	for u, d := range s.place {
		if d >= 0 {
			continue
		}
		if main < 0 || s.t.Workload.Mode == costmodel.Train || s.t.Workload.Strategy.Traits().Staged {
			return false
		}
		dev := &s.topo.Devices[main]
		rate := dev.CPUBytesPerSecond
		if d == costmodel.OnDisk {
			rate = dev.DiskBytesPerSecond
		}
		if rate <= 0 {
			return false
		}
		place[u], s.copied[u] = main, float64(s.t.Units[u].Params)/rate
	}
	s.place = place
	return true
}
