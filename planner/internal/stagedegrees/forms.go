package stagedegrees

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// form is one form of a stage, with the costs of its units.
type form struct {
	table *costmodel.Table
	gpus  int
	chain timeline.Ranks
	// Prefix sums over items, in seconds per micro-batch; issue is the host's time. update includes
	// the replicas' communication.
	forward, backward, issue, update []float64
	workspace                        int64
	// deepest, by stage, is the most later stages with which it fits; -1: none.
	deepest []int16
	// overhead is the memory of a GPU outside the model: for the only stage, at an end of the
	// pipeline, and between two stages.
	overhead [3]int64
}

// The places of a stage.
const (
	alone = iota
	atEnd
	between
)

// newForm computes the sums of a table over the items of an instance.
func newForm(table *costmodel.Table, items *instance.Items) *form {
	topo, device := items.In.Topology, &items.In.Topology.Devices[0]
	out := &form{table: table, chain: timeline.NewRanks(table)}
	out.gpus = int(table.Workload.DP.Count() * table.Workload.TP.Count())
	one := *table
	one.Workload.World = int64(out.gpus)
	stage := one.Folded(&costmodel.Topology{Devices: topo.Devices[:min(len(topo.Devices), out.gpus)]})
	count := items.Count()
	for _, sums := range []*[]float64{&out.forward, &out.backward, &out.issue, &out.update} {
		*sums = make([]float64, count+1)
	}
	for item := range count {
		var seconds steptime.UnitSeconds
		for _, unit := range items.Units(item) {
			of := steptime.Unit(table, stage, 0, unit)
			seconds.Forward += of.Forward
			seconds.Backward += of.Backward
			seconds.Issue += of.Issue + of.IssueBack
			seconds.Update += of.Update
		}
		out.forward[item+1], out.backward[item+1] = out.forward[item]+seconds.Forward, out.backward[item]+seconds.Backward
		out.issue[item+1], out.update[item+1] = out.issue[item]+seconds.Issue, out.update[item]+seconds.Update
	}
	out.workspace = table.Workspaces * device.WorkspaceBytes
	for place, stages := range map[int]int{alone: 1, atEnd: 3, between: 3} {
		ranks := *table
		ranks.Stages = make([]*costmodel.Table, stages)
		out.overhead[place] = ranks.Overhead(place/between, device)
	}
	return out
}

// peak returns the peak memory of a GPU of a stage with items [a, b) and after later stages.
func (one *form) peak(problem *problem, a, b, after int) int64 {
	place := between
	switch {
	case a == 0 && b == problem.items.Count():
		place = alone
	case a == 0 || b == problem.items.Count():
		place = atEnd
	}
	schedule := costmodel.NewSchedule(&one.table.Workload, int64(after+1), 1)
	units := costmodel.Interval{First: problem.items.Start[a], End: problem.items.Start[b]}
	return one.chain.Peak(timeline.Rank{Schedule: schedule, Chunks: []costmodel.Interval{units}}, one.workspace) + one.overhead[place]
}

// message returns the time of the transfer at the cut before an item between stages of this form.
func (one *form) message(problem *problem, item int) float64 {
	if item == 0 || item == problem.items.Count() {
		return 0
	}
	topo := problem.items.In.Topology
	return topo.SendSeconds(0, min(1, len(topo.Devices)-1), one.table.Units[problem.items.Start[item]-1].Work.Output)
}
