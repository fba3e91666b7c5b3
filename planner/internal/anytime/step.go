package anytime

import (
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/anymemory"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// anyStep scores maps of any form: the step by tables of what
// costmodel.Table.StepSeconds counts, and the peaks by joining runs.
type anyStep struct {
	sc    *anymemory.Scatter
	sums  *chaintime.Sums // for paces
	units [][]chaintime.PassTimes
	send  [][]float64 // by kind of output, -1 where no link joins two devices
	runs  []timeline.Summary
	// passes and tokens are how often a step runs the model.
	passes, tokens float64
	micro          float64 // bytes of a token's output to those of a micro-batch
	sent           *instance.Sender
	// held and used are scratch, by device.
	held   []timeline.Summary
	used   []bool
	update []float64
}

func newAnyStep(sc *anymemory.Scatter) *anyStep {
	p := sc.In
	n, devices := len(sc.ItemOf), len(sc.Bins)
	a := &anyStep{
		sc: sc, sums: chaintime.NewSums(p, chaintime.Pace{}),
		micro: 1 / float64(max(1, p.Costs.Workload.Seq)), sent: instance.NewSender(p),
		held: make([]timeline.Summary, devices), used: make([]bool, devices), update: make([]float64, devices),
	}
	a.passes, a.tokens = steptime.Passes(p.Costs)
	a.sums.Crossings() // numbers the kinds of outputs
	for u := range n {
		if k := a.sums.Size[u]; k == len(a.send) {
			a.send = append(a.send, a.sums.Between(p.Costs.Units[u].Work.Output, 1, 0))
		}
		a.runs = append(a.runs, timeline.Of(&p.Costs.Units[u]))
	}
	for d := range devices {
		row := make([]chaintime.PassTimes, n)
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
		s := a.send[a.sums.Size[u]][int(m[from])*len(a.units)+int(m[to])]
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
	for u := len(m) - 1; u >= 0 && a.sc.In.Trains(); u-- {
		t, in := &a.units[m[u]][u], 0.
		if u+1 < len(m) {
			in = cross(u, u+1, u)
		}
		micro.run(t.IssueBack, t.Backward+in)
	}
	step = micro.done + (a.passes-1)*max(micro.issue, micro.work) + a.tokens*token.done
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
		h := &a.sc.Bins[d]
		need := h.Idle
		if a.used[d] {
			need = a.held[d].Peak(h.Kept) + h.Overhead
		}
		share, fits = max(share, float64(need)/float64(h.Budget)), fits && need <= h.Budget
	}
	return share, fits
}

// holds reports that an item may be on a device and fits there by itself: no
// peak gets smaller with more units.
func (a *anyStep) holds(i, d int) bool {
	it, h := &a.sc.Items[i], &a.sc.Bins[d]
	if it.Device >= 0 && it.Device != d {
		return false
	}
	run := a.runs[it.Units[0]]
	for _, u := range it.Units[1:] {
		run = run.Join(a.runs[u])
	}
	return run.Peak(h.Kept)+h.Overhead <= h.Budget
}
