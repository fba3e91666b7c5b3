package stagememory

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// weightBound is a share that no cuts are below. At one moment of its own
// each device has at least f micro-batches of every chunk in flight, so that
// together they hold what is there throughout and f times what the units save;
// where all chunks have run back once, their gradients too. The largest item
// alone, on the device that has it, is a bound too.
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

// bareSaved is what an item's units save wherever a cut is: without inputs
// that might be a stage's buffer, and outputs that it sends.
func bareSaved(items *instance.Items, item int) int64 {
	var total int64
	for _, unitIndex := range items.Units(item) {
		unit := &items.In.Costs.Units[unitIndex]
		total += max(0, timeline.Of(unit).Saved-unit.CheckpointedOutput-unit.Entry)
	}
	return total
}

// arenaBound is weightBound where every device has an arena. What a unit takes
// of a device is what it holds throughout, a tied weight once, and as many sets
// of what it saves as the device has micro-batches in flight, in the chunk with
// the fewest; of one micro-batch what it saves or its gradients, whichever are
// more in all.
//
// The devices differ in that number d. With a price λ on each device's bytes,
//
//	share · Σ λ·budget ≥ Σ λ·peak ≥ Σ over devices λ·overhead + Σ over units min over devices λ·(static + d·saved)
//
// for whatever the prices are (weak duality of the fractional assignment). Two
// are tried: one price for all, and for each device the inverse of what the whole
// model would take of it, which is tight if the units are equal.
func arenaBound(peaks *instance.StagePeaks) float64 {
	units, depth := arenaUnits(peaks)
	even, inverse := make([]float64, len(depth)), make([]float64, len(depth))
	for device, times := range depth {
		var all float64
		for _, unit := range units {
			all += unit.static + times*unit.saved
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
		for _, unit := range units {
			least := math.Inf(1)
			for device, price := range prices {
				least = min(least, price*(unit.static+depth[device]*unit.saved))
			}
			paid += least
		}
		best = max(best, paid/budgets)
	}
	return best * (1 - 1e-12) // past the rounding of the sums
}

// arenaUnit is what a unit takes of any device: throughout, and for each
// micro-batch in flight.
type arenaUnit struct{ static, saved float64 }

// arenaUnits are all units, and the micro-batches in flight on each device.
func arenaUnits(peaks *instance.StagePeaks) (units []arenaUnit, depth []float64) {
	schedule, trains := peaks.In.Schedule(), peaks.In.Trains()
	units, depth = make([]arenaUnit, len(peaks.In.Costs.Units)), make([]float64, schedule.Stages)
	var saved, grads int64
	for i := range units {
		regions := &peaks.In.Costs.Units[i].Regions
		units[i].static = float64(regions.Weights)
		if trains {
			units[i] = arenaUnit{float64(regions.Weights + regions.Master + regions.State + regions.Grads), float64(regions.Input + regions.Saved)}
			saved, grads = saved+regions.Input+regions.Saved, grads+regions.Grads
		}
	}
	if trains && schedule.MicroBatches == 1 { // a stack has either, not both
		for i := range units {
			regions := &peaks.In.Costs.Units[i].Regions
			units[i].static -= float64(regions.Grads)
			if grads > saved {
				units[i].saved = float64(regions.Grads)
			}
		}
	}
	for rank := range depth {
		depth[rank] = float64(slices.Min(order.Depths(schedule.Chunks, order.Phases(schedule, int64(rank))...)))
	}
	return units, depth
}
