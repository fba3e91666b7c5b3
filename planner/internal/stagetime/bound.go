package stagetime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// pipeBound holds lower bounds on what is left of a step when the first
// stages are cut, for pipelines with one stage a device. With t = f + b the
// seconds of a stage's micro-batch and r the way from its end through all
// later stages and back, a stage is at work, or waits for what it sent, for
//
//	m·t + r                                   forward only, and GPipe
//	m·t + max(0, r−(w−1)f) + max(0, r−(w−1)b) 1F1B, w = its forwards in flight
//
// as GPipe's first backward comes after the last forward's return, and
// 1F1B's w−1 other micro-batches are all that fills the wait for the first
// backward and for the last (Narayanan et al., SC 2021, §2.2, for stages that
// differ). As the forward of micro-batch i+w waits for i's backward, it is
// also at least ⌊(m−1)/w⌋ round trips. Before the stage, its first
// micro-batch passes all earlier stages, and its last gradient after it.
type pipeBound struct {
	stages, items, batches int
	train                  bool
	kind                   costmodel.ScheduleKind
	// around[problem][under] is the least of the way through stages s… with the items
	// from a on, and back; token the least time of a token there. whole and
	// ends are bounds on the end of the first stage's device after it got
	// there, and on the last update.
	around, token, whole, ends [][]float64
	// host is the least of the longest time in which a stage's host issues
	// all its kernels, from the start of the step.
	host [][]float64
}

// fits says which stretches a stage may hold; seconds of what passes at a cut
// come from to and from.
type cutter struct {
	*pipeCosts
	fits     [][]bool    // by stage, a·(items+1)+b
	to, from [][]float64 // by stage and item: the message at a cut behind it
}

func (c *cutter) ok(s, a, b, items int) bool { return c.fits[s][a*(items+1)+b] }

// width is the time of a stage between its first forward and its last
// backward, given the way round behind it.
func (p *pipeBound) width(s int, f, b, r float64) float64 {
	m := float64(p.batches)
	if !p.train || p.kind == costmodel.GPipe {
		return m*(f+b) + r
	}
	flying := min(p.batches, p.stages-s)
	w := float64(flying)
	first, last := max(0, r-(w-1)*f), max(0, r-(w-1)*b)
	wait := max(first, last)
	if p.batches > flying {
		wait = first + last
	}
	rounds := (p.batches - 1) / flying
	rest := float64((p.batches-1)%flying + 1)
	return max(m*(f+b)+wait, rest*f+float64(rounds)*(f+b+r)+r+b)
}

func newPipeBound(s costmodel.Schedule, train bool, c *cutter, items int) *pipeBound {
	p := &pipeBound{stages: int(s.Stages), items: items, batches: int(s.MicroBatches), train: train, kind: s.Kind}
	for _, rows := range []*[][]float64{&p.around, &p.token, &p.whole, &p.ends, &p.host} {
		*rows = make([][]float64, p.stages+1)
		for s := range *rows {
			(*rows)[s] = make([]float64, items+1)
			for a := range (*rows)[s] {
				(*rows)[s][a] = math.Inf(1)
			}
		}
		(*rows)[p.stages][items] = 0
	}
	for s := p.stages - 1; s >= 0; s-- {
		for a := s; a < items; a++ {
			p.fill(c, s, a)
		}
	}
	return p
}

func (p *pipeBound) fill(c *cutter, s, a int) {
	for b := a + 1; b <= p.items-(p.stages-1-s); b++ {
		if s == p.stages-1 && b < p.items || !c.ok(s, a, b, p.items) || math.IsInf(p.around[s+1][b], 1) {
			continue
		}
		v := p.stage(c, s, a, b)
		p.around[s][a] = min(p.around[s][a], v.through+p.around[s+1][b])
		p.host[s][a] = min(p.host[s][a], max(v.host, p.host[s+1][b]))
		p.token[s][a] = min(p.token[s][a], v.token+p.token[s+1][b])
		p.whole[s][a] = min(p.whole[s][a], max(v.width, v.through+p.whole[s+1][b]))
		p.ends[s][a] = min(p.ends[s][a], max(v.width+v.update, v.ahead+p.ends[s+1][b]))
	}
}

// stageView is one stage of given items in numbers.
type stageView struct {
	through float64 // a micro-batch through it, to the next stage, and back
	ahead   float64 // the same forward only
	width   float64
	update  float64
	token   float64
	host    float64 // with the update behind it
}

func (p *pipeBound) stage(c *cutter, s, a, b int) stageView {
	f, back := c.forward[s][b]-c.forward[s][a], c.backward[s][b]-c.backward[s][a]
	to, from := c.to[s][b], c.from[s][b]
	if !p.train {
		back, from = 0, 0
	}
	r := 0.
	if s+1 < p.stages {
		r = to + from + p.around[s+1][b]
	}
	return stageView{
		through: f + back + to + from, ahead: f + to, width: p.width(s, f, back, r),
		update: c.update[s][b] - c.update[s][a], host: c.issued(s, a, b, p.batches) + c.update[s][b] - c.update[s][a], token: c.tokens * (c.token[s][b] - c.token[s][a]),
	}
}

// issued is the time in which a stage's host issues its kernels of a step.
func (c *pipeCosts) issued(s, a, b, batches int) float64 {
	return float64(batches) * (c.issue[s][b] - c.issue[s][a] + c.issueBack[s][b] - c.issueBack[s][a])
}
