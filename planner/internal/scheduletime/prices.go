package scheduletime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// prices compute the memory and the step of any cuts under a table, from sums made once.
type prices struct {
	*costmodel.Table
	peaks *instance.StagePeaks
	ticks *steptime.Ticks // nil: another engine's step
	// works are the seconds of a step's passes of the items before each, on the quickest GPU.
	works []float64
}

// prices returns those of a schedule and blocks.
func (search *search) prices(kind costmodel.ScheduleKind, again []bool) (*prices, error) {
	table, err := search.Table(kind, again)
	if err != nil {
		return nil, err
	}
	known := search.priced[table]
	if known == nil {
		in, items := *search.Items.In, *search.Items
		in.Costs, items.In = table, &in
		known = &prices{Table: table, peaks: instance.NewStagePeaks(&items), works: worksOf(table, search.Topology, &items)}
		if table.Workload.Runtime == costmodel.Devmap {
			known.ticks = steptime.TicksOf(table, search.Topology)
		}
		search.priced[table] = known
	}
	return known, nil
}

// step returns the seconds of a step; +Inf if there is none.
func (prices *prices) step(topo *costmodel.Topology, placement devicemap.Map) float64 {
	if prices.ticks == nil {
		if step := devicemap.StepSeconds(prices.Table, topo, placement); step != nil {
			return *step
		}
		return math.Inf(1)
	}
	places := make([]int, len(placement))
	for unit, device := range placement {
		places[unit] = int(device)
	}
	step, err := prices.ticks.Seconds(places)
	if err != nil {
		return math.Inf(1)
	}
	return step
}

// evaluate predicts a pipeline.
func (search *search) evaluate(kind costmodel.ScheduleKind, cuts []int, again []bool) (*Choice, error) {
	return search.against(nil, kind, cuts, again)
}

// against predicts a pipeline. Its step stays 0 if its memory alone makes it worse than another.
func (search *search) against(other *Choice, kind costmodel.ScheduleKind, cuts []int, again []bool) (*Choice, error) {
	prices, err := search.prices(kind, again)
	if err != nil {
		return nil, err
	}
	search.tried++
	out := &Choice{Kind: kind, Table: prices.Table, cuts: slices.Clone(cuts), again: slices.Clone(again), used: make([]int64, len(search.Topology.Devices))}
	for gpu := range out.used {
		out.used[gpu] = prices.peaks.Used(gpu, cuts)
		out.Share = max(out.Share, float64(out.used[gpu])/float64(search.Topology.Devices[gpu].Budget()))
	}
	if other != nil && out.Share > max(1, other.Share) {
		return out, nil
	}
	if other != nil && prices.ticks != nil && max(out.Share, other.Share) <= 1 && prices.busiest(search.schedule(kind), cuts) >= other.Step {
		out.Step = math.Inf(1)
		return out, nil
	}
	out.Map = search.mapOf(kind, cuts)
	if out.Step = prices.step(search.Topology, out.Map); math.IsInf(out.Step, 1) {
		return nil, ErrNone
	}
	return out, nil
}

// spare returns the bytes of a GPU's budget that a choice leaves; less than 0: it needs more.
func (question *Question) spare(choice *Choice, gpu int) int64 {
	return question.Topology.Devices[gpu].Budget() - choice.used[gpu]
}

// worksOf returns the seconds of a step's passes of the items before each, on the quickest GPU.
func worksOf(table *costmodel.Table, topo *costmodel.Topology, items *instance.Items) []float64 {
	out := make([]float64, items.Count()+1)
	for item := range items.Count() {
		least := math.Inf(1)
		for device := range topo.Devices {
			var took seconds
			for _, unit := range items.Units(item) {
				took.add(unitTimes(table, topo, device, unit))
			}
			least = min(least, took.forward+took.input+took.weight)
		}
		out[item+1] = out[item] + float64(max(1, table.Workload.MicroBatches))*least
	}
	return out
}

// busiest returns a lower bound on the longest time that a GPU works in a step, in seconds.
func (prices *prices) busiest(schedule costmodel.Schedule, cuts []int) (most float64) {
	work := make([]float64, schedule.Stages)
	for run := range len(cuts) - 1 {
		rank := schedule.RunRank(int64(run))
		work[rank] += prices.works[cuts[run+1]] - prices.works[cuts[run]]
		most = max(most, work[rank])
	}
	return most * (1 - 1e-9)
}
