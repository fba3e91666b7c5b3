package assigntime

import (
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/chaintime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// evaluator scores maps of any form. It computes steps from tables of [steptime.Step]'s parts, and
// peaks by joining runs.
type evaluator struct {
	problem *assignment.Problem
	sums    *chaintime.Sums
	units   [][]steptime.UnitSeconds
	send    [][]float64 // by kind of output, -1 if no link joins two devices
	runs    []timeline.Summary
	sender  *instance.Sender
	// loads and used are scratch, by device.
	loads []timeline.Summary
	used  []bool
}

func newEvaluator(problem *assignment.Problem) *evaluator {
	in := problem.In
	count, devices := len(problem.ItemOf), len(problem.Devices)
	eval := &evaluator{
		problem: problem, sums: chaintime.NewSums(in, steptime.Waits{}),
		sender: instance.NewSender(in), loads: make([]timeline.Summary, devices), used: make([]bool, devices),
	}
	eval.sums.Crossings() // numbers the kinds of outputs
	for unit := range count {
		if k := eval.sums.Size[unit]; k == len(eval.send) {
			eval.send = append(eval.send, eval.sums.Between(in.Timed().Units[unit].Work.Output, 1, 0, 0))
		}
		eval.runs = append(eval.runs, timeline.Of(&in.Timed().Units[unit]))
	}
	for device := range devices {
		row := make([]steptime.UnitSeconds, count)
		for unit := range row {
			row[unit] = steptime.Unit(in.Timed(), in.Topology, device, unit)
		}
		eval.units = append(eval.units, row)
	}
	return eval
}

// seconds returns a map's step, and how many of its crossings have no link.
func (eval *evaluator) seconds(placement devicemap.Map) (step float64, missing int) {
	step, _ = steptime.Sequential(&eval.problem.In.Timed().Workload, placement,
		func(unit, device int) *steptime.UnitSeconds { return &eval.units[device][unit] },
		func(unit, from, to int) float64 {
			seconds := eval.send[eval.sums.Size[unit]][from*len(eval.units)+to]
			if seconds < 0 {
				missing++
				return 0
			}
			return seconds
		})
	return step, missing
}

// share returns the largest share of a map, and whether the map fits.
func (eval *evaluator) share(placement devicemap.Map) (share float64, fits bool) {
	clear(eval.loads)
	clear(eval.used)
	for unit, device := range placement {
		eval.loads[device], eval.used[device] = eval.loads[device].Join(eval.runs[unit]), true
	}
	fits = true
	for deviceIndex := range eval.loads {
		device := &eval.problem.Devices[deviceIndex]
		need := device.Idle
		if eval.used[deviceIndex] {
			need = eval.loads[deviceIndex].Peak(device.Resident) + device.Overhead
		}
		share, fits = max(share, float64(need)/float64(device.Budget)), fits && need <= device.Budget
	}
	return share, fits
}

// fitsAlone reports that an item may be on a device and fits there alone. More units never make a
// peak smaller.
func (eval *evaluator) fitsAlone(i, deviceIndex int) bool {
	it, device := &eval.problem.Items[i], &eval.problem.Devices[deviceIndex]
	if it.Device >= 0 && it.Device != deviceIndex {
		return false
	}
	run := eval.runs[it.Units[0]]
	for _, unit := range it.Units[1:] {
		run = run.Join(eval.runs[unit])
	}
	return run.Peak(device.Resident)+device.Overhead <= device.Budget
}
