package chaintime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Sums are the parts that the step of a device map adds up where it is known
// who is waited for: of each unit on each device, and of what crosses between
// devices.
type Sums struct {
	In             *instance.Instance
	Waits          steptime.Waits
	units, devices int
	// Size numbers the kinds of units' outputs, once [Sums.Crossings] was asked.
	Size []int
}

// NewSums are the sums of an instance at given waits.
func NewSums(in *instance.Instance, waits steptime.Waits) *Sums {
	return &Sums{In: in, Waits: waits, units: len(in.Costs.Units), devices: len(in.Topology.Devices)}
}

// At is the sums at other waits.
func (t *Sums) At(waits steptime.Waits) *Sums {
	at := *t
	at.Waits, at.Size = waits, nil
	return &at
}

// WaitsOf says who is waited for in a map: at these waits its sum is its step.
func (t *Sums) WaitsOf(m devicemap.Map) steptime.Waits {
	_, waits := steptime.Sequential(&t.In.Costs.Workload, m,
		func(u, d int) steptime.UnitSeconds { return steptime.Unit(t.In.Costs, t.In.Topology, d, u) },
		func(u, from, to int) float64 {
			return t.In.Topology.SendSeconds(from, to, t.In.Costs.Units[u].Work.Output)
		})
	return waits
}

// Seconds are those of each unit on each device: all its passes, and its
// update.
func (t *Sums) Seconds() (units, update [][]float64) {
	for d := range t.devices {
		own, up := make([]float64, t.units), make([]float64, t.units)
		for u := range own {
			s := steptime.Unit(t.In.Costs, t.In.Topology, d, u)
			own[u], up[u] = t.Waits.Unit(&t.In.Costs.Workload, t.units, u, s), s.Update
		}
		units, update = append(units, own), append(update, up)
	}
	return units, update
}

// sumOf is the step of a map: the sum at its own waits.
func (t *Sums) sumOf(m devicemap.Map) float64 { return t.sumAt(t.WaitsOf(m), m) }

// sumAt is the sum of a map at given waits: a bound on its step.
func (t *Sums) sumAt(waits steptime.Waits, m devicemap.Map) float64 {
	at := t.At(waits)
	units, update := at.Seconds()
	cross := at.Crossings()
	sum, slowest := 0., make([]float64, t.devices)
	for u, d := range m {
		sum += units[d][u]
		slowest[d] += update[d][u]
		if u > 0 {
			sum += cross[at.Size[u-1]][int(m[u-1])*t.devices+int(d)]
		}
	}
	return sum + slices.Max(slowest)
}

// Crossings are the times of each distinct output between all devices, -1
// where they are not joined.
func (t *Sums) Crossings() [][]float64 {
	type kind struct {
		bytes       int64
		there, back float64
	}
	seen := map[kind]int{}
	var out [][]float64
	for u := range t.In.Costs.Units {
		k := kind{bytes: t.In.Costs.Units[u].Work.Output}
		k.there, k.back = t.Waits.Crossings(&t.In.Costs.Workload, t.units, u)
		at, ok := seen[k]
		if !ok {
			at = len(out)
			seen[k] = at
			out = append(out, t.Between(k.bytes, k.there, k.back))
		}
		t.Size = append(t.Size, at)
	}
	return out
}

// Between is what so many bytes take from each device to each, there and back
// so often.
func (t *Sums) Between(bytes int64, there, back float64) []float64 {
	topo := t.In.Topology
	row := make([]float64, t.devices*t.devices)
	for from := range t.devices {
		for to := range t.devices {
			switch {
			case from == to:
			case !topo.Linked(from, to):
				row[from*t.devices+to] = -1
			default:
				row[from*t.devices+to] = there*topo.SendSeconds(from, to, bytes) + back*topo.SendSeconds(to, from, bytes)
			}
		}
	}
	return row
}
