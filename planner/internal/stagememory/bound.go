package stagememory

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// weightBound returns a lower bound of the largest share of any cuts. At some moment each device
// has at least f micro-batches of every chunk in flight. So the devices together have the static
// memory and f times the saved activations. After all chunks have run back once, the gradients
// count too. The largest single item on its device is another bound.
func weightBound(peaks *instance.StagePeaks) float64 {
	if costmodel.StageRulesOf(peaks.In.Costs.Workload.Runtime).Arena {
		return arenaBound(peaks)
	}
	var static, saved, grads, most, budgets, budget int64
	for i := range peaks.Count() {
		summary := peaks.Costs(peaks.Start[i], peaks.Start[i+1])
		static, saved, grads, most = static+summary.Static, saved+bareSaved(peaks.Items, i), grads+summary.Grads, max(most, summary.Static)
	}
	for device := range peaks.Overhead {
		b := peaks.In.Topology.Devices[device].Budget()
		static, budgets, budget = static+peaks.Overhead[device], budgets+b, max(budget, b)
	}
	all := static
	if peaks.In.Trains() {
		before, after := inFlight(peaks.In.Schedule())
		all = max(static+before*saved, static+grads+after*saved, static+grads)
	}
	return max(float64(all)/float64(budgets), float64(most+slices.Min(peaks.Overhead))/float64(budget))
}

// bareSaved returns the bytes that an item's units save with any cuts. It leaves out inputs that
// may be a stage's buffer, and outputs that a stage sends.
func bareSaved(items *instance.Items, item int) int64 {
	var total int64
	for _, unitIndex := range items.Units(item) {
		unit := &items.In.Costs.Units[unitIndex]
		total += max(0, timeline.Of(unit).Saved-unit.CheckpointedOutput-unit.Entry)
	}
	return total
}

// arenaBound is weightBound for devices with an arena. A unit takes its static memory, with a tied
// weight once. It also takes its saved activations for each micro-batch in flight, in the chunk
// with the fewest. With one micro-batch, it counts saved activations or gradients, whichever are
// more in all.
//
// The devices differ in the number d of micro-batches in flight. With a price λ on each device's
// bytes,
//
//	share · Σ λ·budget ≥ Σ λ·peak ≥ Σ over devices λ·overhead + Σ over units min over devices λ·(static + d·saved)
//
// for any prices (weak duality of the fractional assignment). It tries two: one price for all, and
// for each device the inverse of the whole model's memory there, which is tight for equal units.
func arenaBound(peaks *instance.StagePeaks) float64 {
	units, depth := arenaUnits(peaks)
	even, inverse := make([]float64, len(depth)), make([]float64, len(depth))
	for device, times := range depth {
		var all float64
		for i := range units {
			all += units[i].on(times)
		}
		even[device], inverse[device] = 1, 1/max(1, all)
	}
	best := 0.
	for _, prices := range [][]float64{even, inverse} {
		var paid, budgets float64
		for device, price := range prices {
			paid += price * float64(peaks.Overhead[device])
			budgets += price * float64(peaks.In.Topology.Devices[device].Budget())
		}
		for i := range units {
			least := math.Inf(1)
			for device, price := range prices {
				least = min(least, price*units[i].on(depth[device]))
			}
			paid += least
		}
		best = max(best, paid/budgets)
	}
	return best * (1 - 1e-12) // below the rounding of the sums
}

// arenaUnit is a unit's memory on any device: static, and for each micro-batch in flight.
type arenaUnit struct{ static, saved, late, pending float64 }

// on is the unit's memory on a device with this depth.
func (unit *arenaUnit) on(depth order.Depth) float64 {
	return unit.static + float64(depth.Saved)*unit.saved + float64(depth.Late)*unit.late + float64(depth.Pending)*unit.pending
}

// arenaUnits returns all units, and the micro-batches in flight on each device.
func arenaUnits(peaks *instance.StagePeaks) (units []arenaUnit, depth []order.Depth) {
	schedule, trains := peaks.In.Schedule(), peaks.In.Trains()
	units, depth = make([]arenaUnit, len(peaks.In.Costs.Units)), make([]order.Depth, schedule.Stages)
	var saved, grads int64
	for i := range units {
		regions := &peaks.In.Costs.Units[i].Regions
		units[i].static = float64(regions.Weights)
		if trains {
			units[i] = arenaUnit{float64(regions.Weights + regions.Master + regions.State + regions.Grads), 0, 0, 0}
			set, late, pending := regions.OnDevice()
			units[i].saved, units[i].late, units[i].pending = float64(set), float64(late), float64(pending)
			saved, grads = saved+set, grads+regions.Grads
		}
	}
	if trains && schedule.MicroBatches == 1 && !schedule.Kind.Split() && peaks.In.Costs.Workload.OffloadActivations == "" { // a stack has one of them, not both
		for i := range units {
			regions := &peaks.In.Costs.Units[i].Regions
			units[i].static -= float64(regions.Grads)
			if grads > saved {
				units[i].saved = float64(regions.Grads)
			}
		}
	}
	for rank := range depth {
		chunks := order.Depths(schedule.Chunks, order.Phases(schedule, int64(rank))...)
		depth[rank] = chunks[0]
		for _, chunk := range chunks[1:] {
			depth[rank] = order.Depth{Saved: min(depth[rank].Saved, chunk.Saved), Late: min(depth[rank].Late, chunk.Late), Pending: min(depth[rank].Pending, chunk.Pending)}
		}
	}
	return units, depth
}
