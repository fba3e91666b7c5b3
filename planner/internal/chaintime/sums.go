package chaintime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Sums computes the parts whose sum is a device map's step at given waits: the seconds of each unit
// on each device, and of the transfers between devices.
type Sums struct {
	In             *instance.Instance
	Waits          steptime.Waits
	units, devices int
	alike          bool // all devices are equal, and all pairs of them
	// Units in [first, last) send their outputs as messages.
	first, last int
	// Size is the number of each unit's kind of output, set by [Sums.Crossings].
	Size []int
}

// NewSums returns the sums of an instance at given waits.
func NewSums(in *instance.Instance, waits steptime.Waits) *Sums {
	sums := &Sums{In: in, Waits: waits, units: len(in.Timed().Units), devices: len(in.Topology.Devices)}
	sums.last, sums.alike = sums.units, sums.devices > 1 && in.Uniform()
	if in.Timed().Workload.Runtime == costmodel.Devmap {
		sums.first, sums.last = costmodel.Running(in.Timed().Units)
	}
	return sums
}

// At returns the sums at other waits.
func (sums *Sums) At(waits steptime.Waits) *Sums {
	at := *sums
	at.Waits, at.Size = waits, nil
	return &at
}

// WaitsOf returns a map's waits: the sum at these waits equals the map's step.
func (sums *Sums) WaitsOf(placement devicemap.Map) steptime.Waits {
	_, waits := steptime.Sequential(&sums.In.Timed().Workload, placement,
		func(unit, device int) *steptime.UnitSeconds {
			seconds := steptime.Unit(sums.In.Timed(), sums.In.Topology, device, unit)
			return &seconds
		},
		func(unit, from, to int) float64 {
			if !sums.sends(unit) {
				return 0
			}
			return sums.In.Topology.SendSeconds(from, to, sums.In.Timed().Units[unit].Work.Output)
		})
	return waits
}

// sends reports that a unit's output is a message if it crosses.
func (sums *Sums) sends(unit int) bool { return sums.first <= unit && unit < sums.last }

// Seconds returns the seconds of each unit on each device: all its passes, and its update. Equal
// devices share a row.
func (sums *Sums) Seconds() (units, update [][]float64) {
	for device := range sums.devices {
		if device > 0 && instance.SameFigures(&sums.In.Topology.Devices[device-1], &sums.In.Topology.Devices[device]) {
			units, update = append(units, units[device-1]), append(update, update[device-1])
			continue
		}
		own, up := make([]float64, sums.units), make([]float64, sums.units)
		for unit := range own {
			seconds := steptime.Unit(sums.In.Timed(), sums.In.Topology, device, unit)
			own[unit], up[unit] = weighted(&sums.In.Timed().Workload, sums.Waits, sums.units, unit, &seconds), seconds.Update
		}
		units, update = append(units, own), append(update, up)
	}
	return units, update
}

// sumOf returns the step of a map: the sum at the map's own waits.
func (sums *Sums) sumOf(placement devicemap.Map) float64 {
	return sums.sumAt(sums.WaitsOf(placement), placement)
}

// sumAt returns the sum of a map at given waits, a lower bound of its step.
func (sums *Sums) sumAt(waits steptime.Waits, placement devicemap.Map) float64 {
	sum, slowest := 0., make([]float64, sums.devices)
	for unit, device := range placement {
		seconds := steptime.Unit(sums.In.Timed(), sums.In.Topology, int(device), unit)
		sum += weighted(&sums.In.Timed().Workload, waits, sums.units, unit, &seconds)
		slowest[device] += seconds.Update
		if unit > 0 {
			there, back, token := sums.crossingsAt(waits, unit-1)
			sum += sums.pair(int(placement[unit-1]), int(device), sums.In.Timed().Units[unit-1].Work.Output, there, back, token)
		}
	}
	return sum + slices.Max(slowest)
}

// crossingsAt returns how often a crossing of a unit's output counts ([crossings]); 0 if the output
// is no message.
func (sums *Sums) crossingsAt(waits steptime.Waits, unit int) (there, back, token float64) {
	if !sums.sends(unit) {
		return 0, 0, 0
	}
	return crossings(&sums.In.Timed().Workload, waits, sums.units, unit)
}

// Crossings returns the times of each distinct output between all devices; -1 if no link joins
// them.
func (sums *Sums) Crossings() [][]float64 {
	return sums.kindsOf(sums.Between)
}

// kindsOf numbers the kinds of outputs and makes a row for each. It ends early if a row is nil.
func (sums *Sums) kindsOf(row func(bytes int64, there, back, token float64) []float64) [][]float64 {
	type kind struct {
		bytes              int64
		there, back, token float64
	}
	seen := map[kind]int{}
	var out [][]float64
	for unit := range sums.In.Timed().Units {
		crossing := kind{bytes: sums.In.Timed().Units[unit].Work.Output}
		crossing.there, crossing.back, crossing.token = sums.crossingsAt(sums.Waits, unit)
		at, ok := seen[crossing]
		if !ok {
			at = len(out)
			seen[crossing] = at
			times := row(crossing.bytes, crossing.there, crossing.back, crossing.token)
			if times == nil {
				return nil
			}
			out = append(out, times)
		}
		sums.Size = append(sums.Size, at)
	}
	return out
}

// Between returns the seconds of a transfer from each device to each. The output counts there and
// back times, and its part for one token counts token times.
func (sums *Sums) Between(bytes int64, there, back, token float64) []float64 {
	row := make([]float64, sums.devices*sums.devices)
	if sums.alike {
		one := sums.pair(0, 1, bytes, there, back, token)
		for at := range row {
			if at%(sums.devices+1) != 0 { // not from a device to itself
				row[at] = one
			}
		}
		return row
	}
	for from := range sums.devices {
		for to := range sums.devices {
			row[from*sums.devices+to] = sums.pair(from, to, bytes, there, back, token)
		}
	}
	return row
}

// pair returns [Sums.Between] for one pair of devices.
func (sums *Sums) pair(from, to int, bytes int64, there, back, token float64) float64 {
	topo, workload := sums.In.Topology, &sums.In.Timed().Workload
	switch {
	case from == to:
		return 0
	case !topo.Linked(from, to):
		return -1
	}
	batch, one := steptime.SendSeconds(workload, topo.SendSeconds(from, to, bytes))
	gradient, _ := steptime.SendSeconds(workload, topo.SendSeconds(to, from, bytes))
	return there*batch + back*gradient + token*one
}
