package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// anyStep scores maps of any form: the step by tables of what
// steptime.Step counts, and the peaks by joining runs.
type anyStep struct {
	sc    *scatter
	sums  *naiveStep // for paces; it has no layout but the problem
	units [][]passTimes
	send  [][]float64 // by kind of output, -1 where no link joins two devices
	runs  []timeline.Summary
	micro float64 // bytes of a token's output to those of a micro-batch
	sent  *sender
	// held and used are scratch, by device.
	held   []timeline.Summary
	used   []bool
	update []float64
}

func newAnyStep(sc *scatter) *anyStep {
	p := sc.p
	n, devices := len(sc.itemOf), len(sc.bins)
	a := &anyStep{
		sc: sc, sums: &naiveStep{l: &layout{p: p, groupOf: make([]int, n)}, devices: devices, train: p.Costs.Workload.Mode == costmodel.Train},
		micro: 1 / float64(max(1, p.Costs.Workload.Seq)), sent: newSender(p),
		held: make([]timeline.Summary, devices), used: make([]bool, devices), update: make([]float64, devices),
	}
	a.sums.passes, a.sums.tokens = steptime.Passes(p.Costs)
	a.sums.crossings() // numbers the kinds of outputs
	for u := range n {
		if k := a.sums.size[u]; k == len(a.send) {
			a.send = append(a.send, a.sums.between(p.Costs.Units[u].Work.Output, 1, 0))
		}
		a.runs = append(a.runs, timeline.Of(&p.Costs.Units[u]))
	}
	for d := range devices {
		row := make([]passTimes, n)
		for u := range row {
			row[u] = steptime.Unit(p.Costs, p.Topology, d, u)
		}
		a.units = append(a.units, row)
	}
	return a
}

// host is a clock of the host and the device at work (costmodel/time_host.go).
type host struct{ issued, done, issue, work float64 }

func (c *host) run(issue, length float64) {
	c.issued += issue
	c.done = max(c.done+length, c.issued)
	c.issue += issue
	c.work += length
}

// seconds is a map's step, and how many of its crossings have no link.
func (a *anyStep) seconds(m devicemap.Map) (step float64, missing int) {
	var micro, token host
	clear(a.update)
	cross := func(u, from, to int) float64 {
		if m[from] == m[to] {
			return 0
		}
		s := a.send[a.sums.size[u]][int(m[from])*len(a.units)+int(m[to])]
		if s < 0 {
			missing++
			return 0
		}
		return s
	}
	for u, d := range m {
		t, in := &a.units[d][u], 0.
		if u > 0 {
			in = cross(u-1, u-1, u)
		}
		micro.run(t.Issue, t.Forward+in)
		token.run(t.IssueToken, t.Token+in*a.micro)
		a.update[d] += t.Update
	}
	for u := len(m) - 1; u >= 0 && a.sums.train; u-- {
		t, in := &a.units[m[u]][u], 0.
		if u+1 < len(m) {
			in = cross(u, u+1, u)
		}
		micro.run(t.IssueBack, t.Backward+in)
	}
	step = micro.done + (a.sums.passes-1)*max(micro.issue, micro.work) + a.sums.tokens*token.done
	slowest := 0.
	for _, s := range a.update {
		slowest = max(slowest, s)
	}
	return step + slowest, missing
}

// share is the largest share of a map, and whether all of it fits.
func (a *anyStep) share(m devicemap.Map) (share float64, fits bool) {
	clear(a.held)
	clear(a.used)
	for u, d := range m {
		a.held[d], a.used[d] = a.held[d].Join(a.runs[u]), true
	}
	fits = true
	for d := range a.held {
		h := &a.sc.bins[d]
		need := h.idle
		if a.used[d] {
			need = a.held[d].Peak(h.kept) + h.extra
		}
		share, fits = max(share, float64(need)/float64(h.budget)), fits && need <= h.budget
	}
	return share, fits
}

// holds reports that an item may be on a device and fits there by itself: no
// peak gets smaller with more units.
func (a *anyStep) holds(i, d int) bool {
	it, h := &a.sc.items[i], &a.sc.bins[d]
	if it.pin >= 0 && it.pin != d {
		return false
	}
	run := a.runs[it.units[0]]
	for _, u := range it.units[1:] {
		run = run.Join(a.runs[u])
	}
	return run.Peak(h.kept)+h.extra <= h.budget
}
