package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// step is the ticks of a step of devmap's own engine, with unit u on device place[u]; negative if
// ranks wait for each other forever.
func (ticks *Ticks) step(place []int) int64 {
	if ticks.table.Workload.Strategy.Traits().Sequential {
		return ticks.sequential(place)
	}
	if workload := &ticks.table.Workload; workload.NewTokens > 0 && workload.MicroBatches > manyGenerate {
		return ticks.near(place)
	}
	return ticks.line(place).step(place)
}

// manyGenerate is up to how many micro-batches generation is simulated with, as
// all of them have tokens on their way at once.
const manyGenerate = 1 << 12

// near extrapolates the step for more micro-batches than generation is simulated with: each further
// one takes the mean of the second half's.
func (ticks *Ticks) near(place []int) int64 {
	step := func(count int64) int64 {
		fewer, table := *ticks, *ticks.table
		fewer.table = &table
		table.Workload.MicroBatches = count
		return fewer.line(place).step(place)
	}
	half, all := step(manyGenerate/2), step(manyGenerate)
	if half < 0 || all < 0 {
		return endless
	}
	more := float64(ticks.table.Workload.MicroBatches-manyGenerate) / (manyGenerate / 2)
	return all + int64(math.Round(more*float64(all-half)))
}

// Seconds is the time of a step in seconds, with unit u on device place[u]. A step that may exceed
// the range of ticks has longer ones.
func (ticks *Ticks) Seconds(place []int) (float64, error) {
	longest := ticks.longest(place)
	if math.IsNaN(longest) || math.IsInf(longest, 0) {
		return math.Inf(1), nil
	}
	if longest > mostTicks {
		longer := *ticks
		longer.units, longer.scale = make(map[int][]UnitTicks), ticks.scale+math.Ilogb(longest/mostTicks)+1
		ticks = &longer
	}
	step := ticks.step(place)
	if step < 0 {
		return 0, errorf("the stages wait for each other in a ring")
	}
	return ticks.seconds(step), nil
}

// mostTicks is the longest step that is counted in picoseconds.
const mostTicks = 1 << 61

// longest is more than any step of a placement takes, in ticks: everything, one after the other.
func (ticks *Ticks) longest(place []int) float64 {
	workload := &ticks.table.Workload
	batches, tokens := float64(max(1, workload.MicroBatches)), float64(workload.NewTokens)
	var total float64
	for unit, device := range place {
		took := Unit(ticks.table, ticks.topo, device, unit)
		seconds := batches*(took.Forward+took.Backward+tokens*took.Token) + took.Update + batches*ticks.copied(unit, device)
		if unit > 0 && place[unit-1] != device {
			output := ticks.table.Units[unit-1].Work.Output
			seconds += batches * (1 + tokens) * (ticks.topo.SendSeconds(place[unit-1], device, output) + ticks.topo.SendSeconds(device, place[unit-1], output))
		}
		for _, tie := range ticks.table.Units[unit].Regions.Tied {
			seconds += updateSeconds(onOwn(&ticks.topo.Devices[device]), copyBytes(&tie), workload.Precision)
			if from := place[tie.Owner]; from != device {
				seconds += ticks.topo.SendSeconds(from, device, tie.Grads) + ticks.topo.SendSeconds(device, from, tie.Grads)
			}
		}
		total += seconds
	}
	return math.Ldexp(total*perSecond, -ticks.scale)
}

// copied is the time of all copies of a unit's saved tensors, which a backward in halves fetches twice.
func (ticks *Ticks) copied(unit, device int) float64 {
	moved := float64(ticks.table.Units[unit].Regions.Out())
	down, up := ticks.topo.Devices[device].Copies()
	return over(moved, down) + 2*over(moved, up)
}

// endless is the step that has no end.
const endless = -1

// sequential is the step of a device map: one micro-batch or token after the other.
func (ticks *Ticks) sequential(place []int) int64 {
	workload := &ticks.table.Workload
	var batch, token, slowest int64
	update := make(map[int]int64)
	first, last := costmodel.Running(ticks.table.Units)
	for unit, device := range place {
		took := ticks.Unit(unit, device)
		batch += took.Forward + took.Recompute + took.Backward
		token += took.Token
		if workload.Mode == costmodel.Train {
			update[device] += ticks.Update(place, unit)
			slowest = max(slowest, update[device])
		}
		if unit <= first || unit > last || place[unit-1] == device {
			continue
		}
		before, output := place[unit-1], ticks.table.Units[unit-1].Work.Output
		busy, latency := ticks.Message(before, device, output)
		batch += busy + latency
		token += ticks.Token(before, device, unit-1)
		if workload.Mode == costmodel.Train {
			busy, latency = ticks.Message(device, before, output)
			batch += busy + latency
		}
	}
	return max(1, workload.MicroBatches)*(batch+workload.NewTokens*token) + slowest
}
