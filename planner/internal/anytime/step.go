package anytime

import (
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// stepper scores maps of any form: the step by tables of what [steptime.Step]
// counts, and the peaks by joining runs.
type stepper struct {
	problem *anywhere.Problem
	sums    *chaintime.Sums
	units   [][]steptime.UnitSeconds
	send    [][]float64 // by kind of output, -1 where no link joins two devices
	runs    []timeline.Summary
	sender  *instance.Sender
	// held and used are scratch, by device.
	held []timeline.Summary
	used []bool
}

func newStepper(sc *anywhere.Problem) *stepper {
	p := sc.In
	n, devices := len(sc.ItemOf), len(sc.Devices)
	a := &stepper{
		problem: sc, sums: chaintime.NewSums(p, steptime.Waits{}),
		sender: instance.NewSender(p), held: make([]timeline.Summary, devices), used: make([]bool, devices),
	}
	a.sums.Crossings() // numbers the kinds of outputs
	for u := range n {
		if k := a.sums.Size[u]; k == len(a.send) {
			a.send = append(a.send, a.sums.Between(p.Costs.Units[u].Work.Output, 1, 0))
		}
		a.runs = append(a.runs, timeline.Of(&p.Costs.Units[u]))
	}
	for d := range devices {
		row := make([]steptime.UnitSeconds, n)
		for u := range row {
			row[u] = steptime.Unit(p.Costs, p.Topology, d, u)
		}
		a.units = append(a.units, row)
	}
	return a
}

// seconds is a map's step, and how many of its crossings have no link.
func (a *stepper) seconds(m devicemap.Map) (step float64, missing int) {
	step, _ = steptime.Sequential(&a.problem.In.Costs.Workload, m,
		func(u, d int) steptime.UnitSeconds { return a.units[d][u] },
		func(u, from, to int) float64 {
			s := a.send[a.sums.Size[u]][from*len(a.units)+to]
			if s < 0 {
				missing++
				return 0
			}
			return s
		})
	return step, missing
}

// share is the largest share of a map, and whether all of it fits.
func (a *stepper) share(m devicemap.Map) (share float64, fits bool) {
	clear(a.held)
	clear(a.used)
	for u, d := range m {
		a.held[d], a.used[d] = a.held[d].Join(a.runs[u]), true
	}
	fits = true
	for d := range a.held {
		h := &a.problem.Devices[d]
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
func (a *stepper) holds(i, d int) bool {
	it, h := &a.problem.Items[i], &a.problem.Devices[d]
	if it.Device >= 0 && it.Device != d {
		return false
	}
	run := a.runs[it.Units[0]]
	for _, u := range it.Units[1:] {
		run = run.Join(a.runs[u])
	}
	return run.Peak(h.Kept)+h.Overhead <= h.Budget
}
