package stagetime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// pipeCosts are the seconds of the chain's items on the ranks of a pipeline,
// as prefix sums.
type pipeCosts struct {
	*instance.StagePeaks
	schedule                         costmodel.Schedule
	train                            bool
	forward, backward, token, update [][]float64 // by rank
	issue, issueBack                 [][]float64
	barred                           [][]int // prefix counts of items that pins keep off a rank
	tokens                           float64
}

func newPipeCosts(peaks *instance.StagePeaks) *pipeCosts {
	in := peaks.In
	c := &pipeCosts{StagePeaks: peaks, schedule: in.Schedule(), train: in.Trains()}
	_, c.tokens = in.Passes()
	items := peaks.Count()
	for d := range in.Topology.Devices {
		f, b, t, up := make([]float64, items+1), make([]float64, items+1), make([]float64, items+1), make([]float64, items+1)
		issue, issueBack, barred := make([]float64, items+1), make([]float64, items+1), make([]int, items+1)
		for i := range items {
			issue[i+1], issueBack[i+1] = issue[i], issueBack[i]
			f[i+1], b[i+1], t[i+1], up[i+1], barred[i+1] = f[i], b[i], t[i], up[i], barred[i]
			for _, u := range peaks.Units(i) {
				s := steptime.Unit(in.Costs, in.Topology, d, u)
				f[i+1] += s.Forward
				b[i+1] += s.Backward
				issue[i+1] += s.Issue
				issueBack[i+1] += s.IssueBack
				t[i+1] += s.Token
				up[i+1] += s.Update
			}
			if at := peaks.Pins[i]; at >= 0 && at != d {
				barred[i+1]++
			}
		}
		c.forward, c.backward = append(c.forward, f), append(c.backward, b)
		c.token, c.update = append(c.token, t), append(c.update, up)
		c.issue, c.issueBack = append(c.issue, issue), append(c.issueBack, issueBack)
		c.barred = append(c.barred, barred)
	}
	return c
}

// message is the time of what passes at a cut before an item; +Inf where no
// link joins the two.
func (c *pipeCosts) message(from, to, item int) float64 {
	p := c.In
	if from == to {
		return 0
	}
	if !p.Topology.Linked(from, to) {
		return math.Inf(1)
	}
	return p.Topology.SendSeconds(from, to, p.Costs.Units[c.Order[c.Start[item]-1]].Work.Output)
}

// step is the time of a step with these cuts, stage s on rank s.
func (c *pipeCosts) step(cuts []int) float64 {
	n := len(cuts) - 1
	stages, token, update := make([]steptime.Stage, n), 0., make([]float64, n)
	for s := range stages {
		a, b := cuts[s], cuts[s+1]
		stages[s] = steptime.Stage{
			Rank: s, Forward: c.forward[s][b] - c.forward[s][a], Backward: c.backward[s][b] - c.backward[s][a],
			Issue: c.issue[s][b] - c.issue[s][a], IssueBack: c.issueBack[s][b] - c.issueBack[s][a],
		}
		token += c.tokenOf(s, a, b)
		update[s] = c.update[s][b] - c.update[s][a]
		if s+1 < n {
			stages[s].To, stages[s].From = c.message(s, s+1, b), c.message(s+1, s, b)
		}
	}
	slowest := 0.
	for rank, clock := range steptime.Play(c.schedule, c.train, stages) {
		slowest = max(slowest, clock.Device+update[rank])
	}
	return slowest + c.tokens*token
}

// tokenOf is a stage's time of a token: the host starts with it, and the
// stage's units wait for it one after the other.
func (c *pipeCosts) tokenOf(d, a, b int) float64 {
	var clock steptime.Clock
	if c.tokens == 0 {
		return 0
	}
	for _, u := range c.Order[c.Start[a]:c.Start[b]] {
		s := steptime.Unit(c.In.Costs, c.In.Topology, d, u)
		clock.Run(s.IssueToken, s.Token)
	}
	return clock.Device
}
