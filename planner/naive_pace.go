package planner

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// pace says who is waited for in a step of a device map. The host issues
// kernels ahead of the devices, and a pass ends no sooner than its last
// kernel is issued. So a micro-batch ends at the largest, over all its
// passes i (a unit's forwards, then backwards in reverse), of
//
//	the host's time up to i + the devices' time after i
//
// and every further micro-batch takes the longer of the two sums. For given
// i this is a sum over units; the step is the largest of all such sums, and
// each is a bound on it.
type pace struct {
	// micro and token are how many passes the host is waited for, in the
	// first micro-batch and in a token.
	micro, token int
	// host: it sets the pace of further micro-batches.
	host bool
}

// passTimes are the seconds of one unit's passes on one device.
type passTimes = steptime.UnitSeconds

// weighted is a unit's part of the step.
func (c pace) weighted(t *naiveStep, u int, s passTimes) float64 {
	forward, backward := s.Forward, s.Backward
	if c.waits(u) {
		forward = s.Issue
	}
	if c.waits(t.back(u)) {
		backward = s.IssueBack
	}
	more := s.Forward + s.Backward
	if c.host {
		more = s.Issue + s.IssueBack
	}
	token := s.Token
	if u < c.token {
		token = s.IssueToken
	}
	return forward + backward + (t.passes-1)*more + t.tokens*token
}

func (c pace) waits(pass int) bool { return pass < c.micro }

// back is the number of unit u's backward among the passes.
func (t *naiveStep) back(u int) int { return 2*len(t.l.groupOf) - 1 - u }

// crossed is how often unit u's output crosses to the next unit in the time
// that counts: there, and as a gradient back.
func (c pace) crossed(t *naiveStep, u int) (there, back float64) {
	if !c.waits(u + 1) {
		there = 1
	}
	if t.train && !c.waits(t.back(u)) {
		back = 1
	}
	if !c.host {
		there += t.passes - 1
		if t.train {
			back += t.passes - 1
		}
	}
	if u+1 >= c.token {
		there += t.tokens / float64(max(1, t.l.p.Costs.Workload.Seq))
	}
	return there, back
}

// paceOf is the pace of a map: what it waits for, and so the sum that is its
// step.
func (t *naiveStep) paceOf(place []int) pace {
	p := t.l.p
	var out pace
	micro, token := waiting{}, waiting{}
	cross := func(from, to, u int) float64 {
		if from == to {
			return 0
		}
		return p.Topology.SendSeconds(from, to, p.Costs.Units[u].Work.Output)
	}
	units := make([]passTimes, len(place))
	for u, d := range place {
		units[u] = steptime.Unit(p.Costs, p.Topology, d, u)
		in := 0.
		if u > 0 {
			in = cross(place[u-1], d, u-1)
		}
		micro.run(units[u].Issue, units[u].Forward+in)
		token.run(units[u].IssueToken, units[u].Token+in/float64(max(1, p.Costs.Workload.Seq)))
	}
	for u := len(place) - 1; u >= 0 && t.train; u-- {
		in := 0.
		if u+1 < len(place) {
			in = cross(place[u+1], place[u], u)
		}
		micro.run(units[u].IssueBack, units[u].Backward+in)
	}
	out.micro, out.token, out.host = micro.last, token.last, micro.host > micro.work
	return out
}

// waiting follows the host and the devices through passes; last is how many
// had run when the devices waited last.
type waiting struct {
	host, work, most float64
	passes, last     int
}

func (w *waiting) run(issue, length float64) {
	w.passes++
	w.host += issue
	w.work += length
	if ahead := w.host - w.work; ahead > w.most+1e-15*math.Abs(w.host) {
		w.most, w.last = ahead, w.passes
	}
}
