package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// player runs the schedule of a pipeline with one stage a device as
// [steptime.Step] does: an action starts when its device is
// free and its input is there, and ends no sooner than its kernels are
// issued. It is the same rule on arrays, as the search plays thousands of
// cuts.
type player struct {
	schedule costmodel.Schedule
	batches  int
	train    bool
	long     bool     // too many actions for the arrays: costmodel's waves run them
	orders   [][]play // by rank
	// done is when a stage's forward, and backward, of a micro-batch ends;
	// -1: not yet.
	done [2][]float64
	end  []float64 // by rank
	host []float64 // likewise: what is issued by then
	at   []int
}

// mostPlayed is up to how many micro-batches, on all stages, are played one by
// one.
const mostPlayed = 1 << 18

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
	if p.long = s.Stages > mostPlayed/s.MicroBatches; p.long {
		return p
	}
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
	if p.long {
		all := steptime.StageSeconds{Forward: t.forward, Backward: t.backward, Issue: t.issue, IssueBack: t.issueBack, To: t.to, From: t.from}
		return all.Ends(p.schedule.Kind, p.train, p.schedule.MicroBatches)
	}
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
