package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Sequential is the time of a step of a device map, in which one device works at a time and one
// host thread issues to all (naive model parallelism), and who is waited for in it. Unit u is on
// device place[u]; seconds points to what it takes there (a search asks for millions), and send is
// what its output, or the gradient of it, takes from one device to another: [Unit] and
// [costmodel.Topology.SendSeconds], or a search's tables of them.
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

// SendSeconds is a copy's time there as a step counts it, of a whole micro-batch
// and of one token of each of its sequences, given what the link takes for the
// former ([costmodel.Topology.SendSeconds]).
func SendSeconds(workload *costmodel.Workload, seconds float64) (batch, token float64) {
	whole := rounding(workload)
	return whole(seconds), whole(seconds / tokensOf(workload))
}

// rounding is what a workload's engine counts a time as: whole picoseconds, or as it is.
func rounding(workload *costmodel.Workload) func(float64) float64 {
	if workload.Runtime == costmodel.Devmap {
		return picoseconds
	}
	return func(seconds float64) float64 { return seconds }
}

// tokensOf is how many tokens' outputs a micro-batch's output is.
func tokensOf(workload *costmodel.Workload) float64 { return float64(max(1, workload.Seq)) }

// Waits says who is waited for in a step of a device map. As a pass ends no sooner than its last
// kernel is issued, a micro-batch ends at the largest, over the number i of its passes (the units'
// forwards, then their backwards in reverse), of
//
//	the host's time of the first i passes + the devices' time of the others
//
// where i may be 0, a token likewise, and every further micro-batch takes the longer of the two
// sums. So the step is the largest, over all Waits, of a sum over units and crossings and the
// slowest device's update; each such sum is a bound on it.
type Waits struct {
	// Micro and Token are how many passes the host is waited for, in the first
	// micro-batch and in a token.
	Micro, Token int
	// Host: it sets the pace of further micro-batches.
	Host bool
}
