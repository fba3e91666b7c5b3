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
		known = &prices{Table: table, peaks: instance.NewStagePeaks(&items)}
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
