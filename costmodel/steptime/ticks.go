package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// Ticks are the times of a table on a topology in whole picoseconds, as devmap's own engine counts
// them. Integers make every simulation of the step agree. Nothing waits for a host. A pass's time
// follows from its kernels (package recipe) and the device's rates: those measured of this engine's
// kernels, else those of PyTorch's in package catalogue.
//
// A step that may exceed 2^61 ticks, 26 days, has longer ticks.
type Ticks struct {
	table *costmodel.Table
	topo  *costmodel.Topology
	like  []int // by device, the first that takes the same time for everything
	units map[int][]UnitTicks
	scale int // a tick is 2^scale picoseconds

	rows map[costmodel.Schedule][][]order.Phase // by rank
	tied [][]tiedUse
}

// perSecond is how many ticks a second has.
const perSecond = 1e12

// UnitTicks are a unit's on a device: of one micro-batch, and of one token of each of its
// sequences. Recompute is what forward's kernels take that run again before Backward. Learn is the
// second half of a backward in two.
type UnitTicks struct {
	Forward, Recompute, Backward, Learn, Token int64
	// Store and Fetch are the copies of a micro-batch's moved tensors to host memory and back.
	Store, Fetch int64

	update int64 // of its own weights
}

// TicksOf are the ticks of a table's units.
func TicksOf(table *costmodel.Table, topo *costmodel.Topology) *Ticks {
	ticks := &Ticks{table: table, topo: topo, like: make([]int, len(topo.Devices)), units: make(map[int][]UnitTicks), rows: make(map[costmodel.Schedule][][]order.Phase), tied: tiedUses(table.Units)}
	first := make(map[costmodel.Device]int)
	for i := range topo.Devices {
		device := topo.Devices[i]
		device.Name, device.Host, device.GPU = "", "", ""
		device.CapacityBytes, device.ReservedBytes = 0, 0
		if _, ok := first[device]; !ok {
			first[device] = i
		}
		ticks.like[i] = first[device]
	}
	return ticks
}

// phases are the phases of a schedule, by rank.
func (ticks *Ticks) phases(schedule costmodel.Schedule) [][]order.Phase {
	all := ticks.rows[schedule]
	if all == nil {
		all = make([][]order.Phase, schedule.Stages)
		for i := range all {
			all[i] = order.Phases(schedule, int64(i))
		}
		ticks.rows[schedule] = all
	}
	return all
}

// of is so many seconds in ticks.
func (ticks *Ticks) of(seconds float64) int64 {
	const most = 1 << 62
	scaled := math.Ldexp(seconds*perSecond, -ticks.scale)
	if !(scaled < most) {
		return most
	}
	return int64(math.Round(scaled))
}

// seconds are so many ticks.
func (ticks *Ticks) seconds(count int64) float64 {
	return math.Ldexp(float64(count), ticks.scale) / perSecond
}

// Unit returns the ticks of a unit on a device.
func (ticks *Ticks) Unit(unit, device int) UnitTicks {
	device = ticks.like[device]
	row := ticks.units[device]
	if row == nil {
		row = make([]UnitTicks, len(ticks.table.Units))
		on := steady(onOwn(&ticks.topo.Devices[device]), ticks.table)
		for i := range row {
			row[i] = ticks.unit(i, on)
		}
		ticks.units[device] = row
	}
	return row[unit]
}

func (ticks *Ticks) unit(unit int, on *costmodel.Device) UnitTicks {
	took := engineOf(on, &ticks.table.Units[unit].Work, &ticks.table.Workload)
	moved := float64(ticks.table.Units[unit].Regions.Out())
	down, up := on.Copies()
	return UnitTicks{
		Store: ticks.of(over(moved, down)), Fetch: ticks.of(over(moved, up)),
		Forward: ticks.of(took.forward), Token: ticks.of(took.token), Recompute: ticks.of(took.recompute),
		Backward: ticks.of(took.backward), Learn: ticks.of(took.learn), update: ticks.of(took.update),
	}
}

// Message is how long a message occupies its stream, and its further latency.
func (ticks *Ticks) Message(from, to int, bytes int64) (busy, latency int64) {
	latency = ticks.of(ticks.topo.SendSeconds(from, to, 0))
	return ticks.of(ticks.topo.SendSeconds(from, to, bytes)) - latency, latency
}

// Token is how long the part of a unit's output that belongs to one token of
// each sequence occupies the stream that sends it.
func (ticks *Ticks) Token(from, to, unit int) int64 {
	return ticks.of(ticks.topo.SendSeconds(from, to, ticks.table.Units[unit].Work.Output) / tokensOf(&ticks.table.Workload))
}

// Update is the optimizer's time for a unit, if the units are on these devices. It includes the
// unit's own weights, and copies of another device's weights that it is the first here to read.
func (ticks *Ticks) Update(place []int, unit int) int64 {
	device := place[unit]
	total := ticks.Unit(unit, device).update
	for _, tie := range ticks.table.Units[unit].Regions.Tied {
		if ticks.copies(place, unit, &tie) {
			total += ticks.of(engineUpdate(onOwn(&ticks.topo.Devices[device]), copyBytes(&tie), ticks.table.Workload.Precision))
		}
	}
	return total
}

// copies reports that a unit is its device's first to read a weight of another device.
func (ticks *Ticks) copies(place []int, unit int, tie *costmodel.Tie) bool {
	if place[tie.Owner] == place[unit] {
		return false
	}
	for before := range unit {
		if place[before] != place[unit] {
			continue
		}
		for _, other := range ticks.table.Units[before].Regions.Tied {
			if other.Owner == tie.Owner && other.Tensor == tie.Tensor {
				return false
			}
		}
	}
	return true
}

// copyBytes is the optimizer's bytes read and written for a copy. It reads the gradient, and the
// master or else the weights; it writes all but the gradient.
func copyBytes(tie *costmodel.Tie) float64 {
	bytes := tie.Grads + tie.Weights + 2*(tie.Master+tie.State)
	if tie.Master == 0 {
		bytes += tie.Weights
	}
	return float64(bytes)
}
