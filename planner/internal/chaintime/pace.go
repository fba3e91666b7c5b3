package chaintime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// Pace says who is waited for in a step of a device map. The host issues
// kernels ahead of the devices, and a pass ends no sooner than its last
// kernel is issued. So a micro-batch ends at the largest, over all its
// passes i (a unit's forwards, then backwards in reverse), of
//
//	the host's time up to i + the devices' time after i
//
// and every further micro-batch takes the longer of the two sums. For given
// i this is a sum over units; the step is the largest of all such sums, and
// each is a bound on it.
type Pace struct {
	// Micro and Token are how many passes the host is waited for, in the
	// first micro-batch and in a token.
	Micro, Token int
	// Host: it sets the pace of further micro-batches.
	Host bool
}

// PassTimes are the seconds of one unit's passes on one device.
type PassTimes = steptime.UnitSeconds

// weighted is a unit's part of the step.
func (c Pace) weighted(t *Sums, u int, s PassTimes) float64 {
	forward, backward := s.Forward, s.Backward
	if c.waits(u) {
		forward = s.Issue
	}
	if c.waits(t.back(u)) {
		backward = s.IssueBack
	}
	more := s.Forward + s.Backward
	if c.Host {
		more = s.Issue + s.IssueBack
	}
	token := s.Token
	if u < c.Token {
		token = s.IssueToken
	}
	return forward + backward + (t.passes-1)*more + t.tokens*token
}

func (c Pace) waits(pass int) bool { return pass < c.Micro }

// back is the number of unit u's backward among the passes.
func (t *Sums) back(u int) int { return 2*t.units - 1 - u }

// crossed is how often unit u's output crosses to the next unit in the time
// that counts: there, and as a gradient back.
func (c Pace) crossed(t *Sums, u int) (there, back float64) {
	if !c.waits(u + 1) {
		there = 1
	}
	if t.In.Trains() && !c.waits(t.back(u)) {
		back = 1
	}
	if !c.Host {
		there += t.passes - 1
		if t.In.Trains() {
			back += t.passes - 1
		}
	}
	if u+1 >= c.Token {
		there += t.tokens / float64(max(1, t.In.Costs.Workload.Seq))
	}
	return there, back
}

// PaceOf is the pace of a map: what it waits for, and so the sum that is its
// step.
func (t *Sums) PaceOf(place []int) Pace {
	p := t.In
	var out Pace
	micro, token := waiting{}, waiting{}
	cross := func(from, to, u int) float64 {
		if from == to {
			return 0
		}
		return p.Topology.SendSeconds(from, to, p.Costs.Units[u].Work.Output)
	}
	units := make([]PassTimes, len(place))
	for u, d := range place {
		units[u] = steptime.Unit(p.Costs, p.Topology, d, u)
		in := 0.
		if u > 0 {
			in = cross(place[u-1], d, u-1)
		}
		micro.run(units[u].Issue, units[u].Forward+in)
		token.run(units[u].IssueToken, units[u].Token+in/float64(max(1, p.Costs.Workload.Seq)))
	}
	for u := len(place) - 1; u >= 0 && t.In.Trains(); u-- {
		in := 0.
		if u+1 < len(place) {
			in = cross(place[u+1], place[u], u)
		}
		micro.run(units[u].IssueBack, units[u].Backward+in)
	}
	out.Micro, out.Token, out.Host = micro.last, token.last, micro.host > micro.work
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
