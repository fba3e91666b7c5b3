package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Sequential is the time of a step of a device map, and which waits set it. One device works at a
// time, and one host thread issues to all (naive model parallelism). Unit u is on device place[u].
// seconds points to a unit's time there, as [Unit]; a search asks for millions. send is the time of
// its output or gradient between devices, as [costmodel.Topology.SendSeconds].
func Sequential[D ~int](workload *costmodel.Workload, place []D, seconds func(unit, device int) *UnitSeconds, send func(unit, from, to int) float64) (float64, Waits) {
	var micro, token round
	whole := rounding(workload)
	cross := func(unit int, from, to D) float64 {
		if from == to {
			return 0
		}
		return send(unit, int(from), int(to))
	}
	var few [16]float64                           // a search times millions of maps: without an allocation on so many devices
	update, tokens := few[:1], tokensOf(workload) // by device
	for unit, device := range place {
		took, in := seconds(unit, int(device)), 0.
		if unit > 0 {
			in = cross(unit-1, place[unit-1], device)
		}
		// The host waits for a copy from its memory, and so does the device.
		micro.pass(took.Issue+took.Copied, took.Forward+whole(in)+took.Copied)
		if workload.NewTokens > 0 {
			token.pass(took.IssueToken+took.Copied, took.Token+whole(in/tokens)+took.Copied)
		}
		if more := int(device) + 1 - len(update); more > 0 {
			update = append(update, make([]float64, more)...)
		}
		update[device] += took.Update
	}
	for unit := len(place) - 1; unit >= 0 && workload.Mode == costmodel.Train; unit-- {
		took, in := seconds(unit, int(place[unit])), 0.
		if unit+1 < len(place) {
			in = cross(unit, place[unit+1], place[unit]) // the gradient
		}
		micro.pass(took.IssueBack, took.Backward+whole(in))
	}
	// Updates are issued to all devices at once.
	step := micro.repeated(float64(max(1, workload.MicroBatches))) + TokenPasses(workload)*token.Device + slices.Max(update)
	return step, Waits{Micro: micro.waited, Token: token.waited, Host: micro.Host > micro.worked}
}

// TokenPasses is how often a unit runs for tokens after the first. Devmap's own engine generates
// for one micro-batch after the other; of the others one pass is of all.
func TokenPasses(workload *costmodel.Workload) float64 {
	passes := float64(workload.NewTokens)
	if workload.Runtime == costmodel.Devmap {
		passes *= float64(max(1, workload.MicroBatches))
	}
	return passes
}

// SendSeconds is a copy's time as a step counts it, of a micro-batch and of one token of each of
// its sequences. seconds is the link's time for the micro-batch ([costmodel.Topology.SendSeconds]).
func SendSeconds(workload *costmodel.Workload, seconds float64) (batch, token float64) {
	whole := rounding(workload)
	return whole(seconds), whole(seconds / tokensOf(workload))
}

// rounding is how a workload's engine counts times: in whole picoseconds, or exactly.
func rounding(workload *costmodel.Workload) func(float64) float64 {
	if workload.Runtime == costmodel.Devmap {
		return picoseconds
	}
	return func(seconds float64) float64 { return seconds }
}

// tokensOf is how many tokens' outputs a micro-batch's output is.
func tokensOf(workload *costmodel.Workload) float64 { return float64(max(1, workload.Seq)) }

// Waits says how long a step of a device map waits for the host. A pass ends no sooner than its
// last kernel is issued. So a micro-batch ends at the largest, over the number i of its passes (the
// units' forwards, then their backwards in reverse), of
//
//	the host's time of the first i passes + the devices' time of the others
//
// with i from 0, and a token likewise. Every further micro-batch takes the longer of the two full
// sums. So the step is the largest, over all Waits, of a sum over units and crossings and the
// slowest device's update. Each such sum is a lower bound.
type Waits struct {
	// Micro and Token are how many passes wait for the host, in a micro-batch and in a token.
	Micro, Token int
	// Host: it sets the pace of further micro-batches.
	Host bool
}
