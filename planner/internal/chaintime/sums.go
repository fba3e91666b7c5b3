package chaintime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Sums are the parts that the step of a device map adds up at a pace: of each
// unit on each device, and of what crosses between devices.
type Sums struct {
	In             *instance.Instance
	Pace           Pace
	units, devices int
	// passes are the micro-batches of a step, tokens those generated after it.
	passes, tokens float64
	// Size numbers the kinds of units' outputs, once [Sums.Crossings] was asked.
	Size []int
}

// NewSums are the sums of an instance at a pace.
func NewSums(in *instance.Instance, c Pace) *Sums {
	t := &Sums{In: in, Pace: c, units: len(in.Costs.Units), devices: len(in.Topology.Devices)}
	t.passes, t.tokens = steptime.Passes(in.Costs)
	return t
}

// At is the sums at another pace.
func (t *Sums) At(c Pace) *Sums {
	at := *t
	at.Pace, at.Size = c, nil
	return &at
}

// Seconds are those of each unit on each device: all its passes, and its
// update.
func (t *Sums) Seconds() (units, update [][]float64) {
	for d := range t.devices {
		own, up := make([]float64, t.units), make([]float64, t.units)
		for u := range own {
			s := steptime.Unit(t.In.Costs, t.In.Topology, d, u)
			own[u], up[u] = t.Pace.weighted(t, u, s), s.Update
		}
		units, update = append(units, own), append(update, up)
	}
	return units, update
}

// sumOf is the step of a map: the sum at its own pace.
func (t *Sums) sumOf(place []int) float64 { return t.sumAt(t.PaceOf(place), place) }

// sumAt is the sum of a map at a pace: a bound on its step.
func (t *Sums) sumAt(c Pace, place []int) float64 {
	at := t.At(c)
	units, update := at.Seconds()
	cross := at.Crossings()
	sum, slowest := 0., make([]float64, t.devices)
	for u, d := range place {
		sum += units[d][u]
		slowest[d] += update[d][u]
		if u > 0 {
			sum += cross[at.Size[u-1]][place[u-1]*t.devices+d]
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
		k.there, k.back = t.Pace.crossed(t, u)
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
