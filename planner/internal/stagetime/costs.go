package stagetime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// pipeCosts are the seconds of the chain's items on the ranks of a pipeline, as prefix sums.
type pipeCosts struct {
	*instance.StagePeaks
	schedule                         costmodel.Schedule
	train                            bool
	forward, backward, token, update [][]float64 // by rank
	learn                            [][]float64 // the part of backward that no other stage waits for
	issue, issueBack                 [][]float64
	barred                           [][]int // prefix counts of items that pins exclude from a rank
	tokens                           float64
	// ticks simulate a step of devmap's own engine; nil for other engines.
	ticks *steptime.Ticks
	// firstRun and lastRun are the first and the last unit that run kernels.
	firstRun, lastRun int
}

func newPipeCosts(peaks *instance.StagePeaks) *pipeCosts {
	in := peaks.In
	costs := &pipeCosts{StagePeaks: peaks, schedule: in.TimedSchedule(), train: in.Trains()}
	_, costs.tokens = in.Passes()
	if in.Timed().Workload.Runtime == costmodel.Devmap {
		costs.ticks = steptime.TicksOf(in.Timed(), in.Topology)
	}
	costs.firstRun, costs.lastRun = costmodel.Running(in.Timed().Units)
	items := peaks.Count()
	for device := range in.Topology.Devices {
		if device > 0 && instance.SameFigures(&in.Topology.Devices[device-1], &in.Topology.Devices[device]) {
			costs.repeat()
		} else {
			costs.add(device)
		}
		barred := make([]int, items+1)
		for i, at := range peaks.Pins {
			barred[i+1] = barred[i]
			if at >= 0 && at != device {
				barred[i+1]++
			}
		}
		costs.barred = append(costs.barred, barred)
	}
	return costs
}

// add appends the sums of a device.
func (costs *pipeCosts) add(device int) {
	in, items := costs.In, costs.Count()
	f, b, t, up := make([]float64, items+1), make([]float64, items+1), make([]float64, items+1), make([]float64, items+1)
	issue, issueBack, learn := make([]float64, items+1), make([]float64, items+1), make([]float64, items+1)
	for i := range items {
		issue[i+1], issueBack[i+1], learn[i+1] = issue[i], issueBack[i], learn[i]
		f[i+1], b[i+1], t[i+1], up[i+1] = f[i], b[i], t[i], up[i]
		for _, unit := range costs.Units(i) {
			seconds := steptime.Unit(in.Timed(), in.Topology, device, unit)
			f[i+1] += seconds.Forward
			b[i+1] += seconds.Backward
			learn[i+1] += seconds.Learn
			issue[i+1] += seconds.Issue
			issueBack[i+1] += seconds.IssueBack
			t[i+1] += seconds.Token
			up[i+1] += seconds.Update
		}
	}
	costs.forward, costs.backward = append(costs.forward, f), append(costs.backward, b)
	costs.token, costs.update = append(costs.token, t), append(costs.update, up)
	costs.issue, costs.issueBack, costs.learn = append(costs.issue, issue), append(costs.issueBack, issueBack), append(costs.learn, learn)
}

// repeat appends the sums of the previous device, which is equal.
func (costs *pipeCosts) repeat() {
	for _, rows := range []*[][]float64{&costs.forward, &costs.backward, &costs.token, &costs.update, &costs.issue, &costs.issueBack, &costs.learn} {
		*rows = append(*rows, (*rows)[len(*rows)-1])
	}
}

// message returns the time of the message at a cut before an item; +Inf if no link joins the two.
func (costs *pipeCosts) message(from, to, item int) float64 {
	in := costs.In
	if from == to {
		return 0
	}
	if !in.Topology.Linked(from, to) {
		return math.Inf(1)
	}
	if unit := costs.Order[costs.Start[item]]; costs.ticks != nil && (unit <= costs.firstRun || unit > costs.lastRun) {
		return 0 // nothing runs before it, or after
	}
	batch, _ := steptime.SendSeconds(&in.Timed().Workload, in.Topology.SendSeconds(from, to, in.Timed().Units[costs.Order[costs.Start[item]-1]].Work.Output))
	return batch
}

// step returns the time of a step with these cuts, stage s on rank s.
func (costs *pipeCosts) step(cuts []int) float64 {
	if costs.ticks != nil {
		return costs.planned(costs.Map(cuts, nil))
	}
	count := len(cuts) - 1
	stages, token, update := make([]steptime.Stage, count), 0., make([]float64, count)
	for stage := range stages {
		a, b := cuts[stage], cuts[stage+1]
		stages[stage] = steptime.Stage{
			Rank: stage, Forward: costs.forward[stage][b] - costs.forward[stage][a], Backward: costs.backward[stage][b] - costs.backward[stage][a],
			Issue: costs.issue[stage][b] - costs.issue[stage][a], IssueBack: costs.issueBack[stage][b] - costs.issueBack[stage][a],
		}
		token += costs.tokenOf(stage, a, b)
		update[stage] = costs.update[stage][b] - costs.update[stage][a]
		if stage+1 < count {
			stages[stage].To, stages[stage].From = costs.message(stage, stage+1, b), costs.message(stage+1, stage, b)
		}
	}
	slowest := 0.
	for rank, end := range steptime.Simulate(costs.schedule, costs.train, stages) {
		slowest = max(slowest, end+update[rank])
	}
	return slowest + costs.tokens*token
}

// planned returns the step of devmap's own engine. It is +Inf if a link is missing, or if stages
// would wait for each other.
func (costs *pipeCosts) planned(placement devicemap.Map) float64 {
	place := make([]int, len(placement))
	for unit, device := range placement {
		place[unit] = int(device)
		if unit > 0 {
			if topo, before := costs.In.Topology, place[unit-1]; !topo.Linked(before, place[unit]) || !topo.Linked(place[unit], before) {
				return math.Inf(1)
			}
		}
	}
	seconds, err := costs.ticks.Seconds(place)
	if err != nil {
		return math.Inf(1)
	}
	return seconds
}

// tokenOf returns a stage's time of a token. The host starts with the token, and the stage's units
// wait for it one after the other.
func (costs *pipeCosts) tokenOf(device, a, b int) float64 {
	var issued, ends float64
	if costs.tokens == 0 {
		return 0
	}
	for _, unit := range costs.Order[costs.Start[a]:costs.Start[b]] {
		seconds := steptime.Unit(costs.In.Timed(), costs.In.Topology, device, unit)
		issued += seconds.IssueToken
		ends = max(ends+seconds.Token, issued)
	}
	return ends
}
