package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// timing is a table on a topology, and where its units are.
type timing struct {
	table *costmodel.Table
	topo  *costmodel.Topology
	// place is the device of each unit, by which those on a tier run on the
	// first device that holds any.
	place []int
	// copied are the seconds in which each unit's parameters come from a tier.
	copied []float64
}

// newTiming checks what a step's time is made of, and gives units that left their device the first that has any, and the
// time to copy their parameters there in each forward.
func newTiming(table *costmodel.Table, topo *costmodel.Topology, place []int) (*timing, error) {
	if err := Check(table, topo); err != nil {
		return nil, err
	}
	s := &timing{table: table, topo: topo, place: slices.Clone(place), copied: make([]float64, len(place))}
	main := -1
	for u, d := range place {
		if d < costmodel.OnDisk || d >= len(topo.Devices) {
			return nil, errorf("unit %d is on device %d of %d", u, d, len(topo.Devices))
		}
		if d >= 0 && (main < 0 || d < main) {
			main = d
		}
	}
	for u, d := range place {
		if d >= 0 {
			continue
		}
		if w := &table.Workload; main < 0 || w.Mode == costmodel.Train || !w.Strategy.Traits().Sequential {
			return nil, errorf("unit %d left the devices, which infer under %s does where others stay", u, costmodel.DeviceMap)
		}
		rate := topo.Devices[main].CPUBytesPerSecond
		if d == costmodel.OnDisk {
			rate = topo.Devices[main].DiskBytesPerSecond
		}
		if rate <= 0 {
			return nil, errorf("unit %d left device %d, to which the rate of copies is not known", u, main)
		}
		s.place[u], s.copied[u] = main, float64(table.Units[u].Params)/rate
	}
	return s, nil
}

// unit is what a unit takes where it runs.
func (s *timing) unit(u, d int) UnitSeconds {
	out := Unit(s.table, s.topo, d, u)
	out.Copied = s.copied[u]
	return out
}

// send is the time of a unit's output, or of its gradient, between devices.
func (s *timing) send(u, from, to int) float64 {
	return s.topo.SendSeconds(from, to, s.table.Units[u].Work.Output)
}

func (s *timing) trains() bool { return s.table.Workload.Mode == costmodel.Train }

// microBatches is how often a unit runs forward and backward in a step.
func (s *timing) microBatches() float64 { return float64(max(1, s.table.Workload.MicroBatches)) }

// tokens is how many tokens are generated after the first.
func (s *timing) tokens() float64 { return float64(s.table.Workload.NewTokens) }
