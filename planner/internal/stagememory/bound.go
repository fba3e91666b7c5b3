package stagememory

import (
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
// is on some device by itself.
func weightBound(peaks *instance.StagePeaks) float64 {
	if costmodel.StageRulesOf(peaks.In.Costs.Workload.Runtime).Arena {
		return arenaBound(peaks)
	}
	var static, saved, grads, most, budgets, budget int64
	for i := range peaks.Count() {
		summary := peaks.Costs.Summary(peaks.Start[i], peaks.Start[i+1])
		static, saved, grads, most = static+summary.Static, saved+bareSaved(peaks.Items, i), grads+summary.Grads, max(most, summary.Static)
	}
	for device := range peaks.Overhead {
		b := peaks.In.Topology.Devices[device].Budget()
		static, budgets, budget = static+peaks.Overhead[device], budgets+b, max(budget, b)
	}
	all := static
	if peaks.In.Trains() {
		before, after := timeline.InFlight(peaks.In.Schedule())
		all = max(static+before*saved, static+grads+after*saved, static+grads)
	}
	return max(float64(all)/float64(budgets), float64(most+slices.Min(peaks.Overhead))/float64(budget))
}

// bareSaved is what an item's units save wherever a cut is: without inputs
// that might be a stage's buffer, and outputs handed on.
func bareSaved(items *instance.Items, item int) int64 {
	var total int64
	for _, unitIndex := range items.Units(item) {
		unit := &items.In.Costs.Units[unitIndex]
		total += max(0, timeline.Of(unit).Saved-unit.CheckpointedOutput-unit.Entry)
	}
	return total
}

// arenaBound is weightBound where every device has an arena: there what each
// unit holds throughout, a tied weight once, and the rings of all chunks, of the
// least depth that any of them has; of one micro-batch the larger of all that is
// saved and all gradients, as each stack holds its part of either.
func arenaBound(peaks *instance.StagePeaks) float64 {
	var all, saved, grads, budgets int64
	trains := peaks.In.Trains()
	for i := range peaks.In.Costs.Units {
		regions := &peaks.In.Costs.Units[i].Regions
		all += regions.Weights
		if trains {
			all += regions.Master + regions.State
			saved, grads = saved+regions.Input+regions.Saved, grads+regions.Grads
		}
	}
	switch schedule := peaks.In.Schedule(); {
	case !trains:
	case schedule.MicroBatches > 1:
		all += grads + leastDepth(schedule)*saved
	default:
		all += max(saved, grads)
	}
	for device := range peaks.Overhead {
		all += peaks.Overhead[device]
		budgets += peaks.In.Topology.Devices[device].Budget()
	}
	return float64(all) / float64(budgets)
}

// leastDepth is the least number of micro-batches that any chunk has in flight.
func leastDepth(schedule costmodel.Schedule) int64 {
	least := schedule.MicroBatches
	for rank := range schedule.Stages {
		least = min(least, slices.Min(order.Depths(schedule.Chunks, order.Phases(schedule, rank)...)))
	}
	return least
}
