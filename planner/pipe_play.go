package planner

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// player runs the schedule of a pipeline with one stage a device as
// [costmodel.Table.StepSeconds] does: an action starts when its device is
// free and its input is there, and ends no sooner than its kernels are
// issued. It is the same rule on arrays, as the search plays thousands of
// cuts.
type player struct {
	schedule costmodel.Schedule
	batches  int
	train    bool
	orders   [][]play // by rank
	// done is when a stage's forward, and backward, of a micro-batch ends;
	// -1: not yet.
	done [2][]float64
	end  []float64 // by rank
	host []float64 // likewise: what is issued by then
	at   []int
}

// play is an action of a rank.
type play struct {
	stage, batch int
	back         int // 1: backward
}

// stageTimes are the seconds of the stages: of a micro-batch forward and
// backward, the host's for them, and of the messages to the next stage and
// back.
type stageTimes struct{ forward, backward, issue, issueBack, to, from []float64 }

func newPlayer(s costmodel.Schedule, train bool) *player {
	p := &player{schedule: s, batches: int(s.MicroBatches), train: train}
	ranks := int(s.Stages)
	for rank := range ranks {
		var order []play
		for _, a := range s.Order(int64(rank)) {
			switch {
			case a.Backward && train:
				order = append(order, play{rank, int(a.MicroBatch), 1})
			case !a.Backward:
				order = append(order, play{rank, int(a.MicroBatch), 0})
			}
		}
		p.orders = append(p.orders, order)
	}
	for back := range p.done {
		p.done[back] = make([]float64, ranks*p.batches)
	}
	p.end, p.host, p.at = make([]float64, ranks), make([]float64, ranks), make([]int, ranks)
	return p
}

// run is when each rank ends; it is good until the next run.
func (p *player) run(t *stageTimes) []float64 {
	for back := range p.done {
		for i := range p.done[back] {
			p.done[back][i] = -1
		}
	}
	for rank := range p.end {
		p.end[rank], p.host[rank], p.at[rank] = 0, 0, 0
	}
	for moved := true; moved; {
		moved = false
		for rank, order := range p.orders {
			for p.at[rank] < len(order) {
				a := order[p.at[rank]]
				ready := p.ready(t, a)
				if ready < 0 {
					break
				}
				issue, length := t.issue[a.stage], t.forward[a.stage]
				if a.back == 1 {
					issue, length = t.issueBack[a.stage], t.backward[a.stage]
				}
				p.host[rank] += issue
				p.end[rank] = max(max(p.end[rank], ready)+length, p.host[rank])
				p.done[a.back][a.stage*p.batches+a.batch] = p.end[rank]
				p.at[rank]++
				moved = true
			}
		}
	}
	return p.end
}

// ready is when an action's input is there, -1 while what makes it has not
// run.
func (p *player) ready(t *stageTimes, a play) float64 {
	last := len(t.forward) - 1
	from, back, wait := a.stage-1, 0, 0.
	switch {
	case a.back == 1 && a.stage == last:
		from = a.stage
	case a.back == 1:
		from, back, wait = a.stage+1, 1, t.from[a.stage]
	case a.stage == 0:
		return 0
	default:
		wait = t.to[a.stage-1]
	}
	done := p.done[back][from*p.batches+a.batch]
	if done < 0 {
		return -1
	}
	return done + wait
}

// pipeCosts are the seconds of the chain's items on the ranks of a pipeline,
// as prefix sums.
type pipeCosts struct {
	l                                *layout
	forward, backward, token, update [][]float64 // by rank
	issue, issueBack                 [][]float64
	barred                           [][]int // prefix counts of items that pins keep off a rank
	tokens                           float64
}

func newPipeCosts(l *layout, fixed *pins) *pipeCosts {
	c := &pipeCosts{l: l}
	_, c.tokens = l.p.Costs.Passes()
	items := len(l.start) - 1
	for d := range l.device {
		f, b, t, up := make([]float64, items+1), make([]float64, items+1), make([]float64, items+1), make([]float64, items+1)
		issue, issueBack, barred := make([]float64, items+1), make([]float64, items+1), make([]int, items+1)
		for i := range items {
			issue[i+1], issueBack[i+1] = issue[i], issueBack[i]
			f[i+1], b[i+1], t[i+1], up[i+1], barred[i+1] = f[i], b[i], t[i], up[i], barred[i]
			for _, u := range l.order[l.start[i]:l.start[i+1]] {
				s := l.p.Costs.UnitSeconds(l.p.Topology, d, u)
				f[i+1] += s.Forward
				b[i+1] += s.Backward
				issue[i+1] += s.Issue
				issueBack[i+1] += s.IssueBack
				t[i+1] += s.Token
				up[i+1] += s.Update
			}
			if at := fixed.items[i]; at >= 0 && at != d {
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
	p := c.l.p
	if from == to {
		return 0
	}
	if !p.Topology.Linked(from, to) {
		return math.Inf(1)
	}
	return p.Topology.SendSeconds(from, to, p.Costs.Units[c.l.order[c.l.start[item]-1]].Work.Output)
}

// step is the time of a step with these cuts, stage s on rank s.
func (c *pipeCosts) step(p *player, cuts []int) float64 {
	n := len(cuts) - 1
	t := stageTimes{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	token, update := 0., make([]float64, n)
	for s := range n {
		a, b := cuts[s], cuts[s+1]
		t.forward[s], t.backward[s] = c.forward[s][b]-c.forward[s][a], c.backward[s][b]-c.backward[s][a]
		t.issue[s], t.issueBack[s] = c.issue[s][b]-c.issue[s][a], c.issueBack[s][b]-c.issueBack[s][a]
		token += c.tokenOf(s, a, b)
		update[s] = c.update[s][b] - c.update[s][a]
		if s+1 < n {
			t.to[s], t.from[s] = c.message(s, s+1, b), c.message(s+1, s, b)
		}
	}
	slowest := 0.
	for rank, end := range p.run(&t) {
		slowest = max(slowest, end+update[rank])
	}
	return slowest + c.tokens*token
}

// tokenOf is a stage's time of a token: the host starts with it, and the
// stage's units wait for it one after the other.
func (c *pipeCosts) tokenOf(d, a, b int) float64 {
	if c.tokens == 0 {
		return 0
	}
	host, device := 0., 0.
	for _, u := range c.l.order[c.l.start[a]:c.l.start[b]] {
		s := c.l.p.Costs.UnitSeconds(c.l.p.Topology, d, u)
		host += s.IssueToken
		device = max(device+s.Token, host)
	}
	return device
}
