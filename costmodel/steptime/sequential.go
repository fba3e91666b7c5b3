package steptime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Sequential is the time of a step of a device map, in which one device works
// at a time and one host thread issues to all (naive model parallelism), and
// who is waited for in it. Unit u is on device place[u]; unit says what it
// takes there, and send what its output, or the gradient of it, takes from one
// device to another: [Unit] and [costmodel.Topology.SendSeconds], or a search's
// tables of them.
func Sequential[D ~int](w *costmodel.Workload, place []D, unit func(u, device int) UnitSeconds, send func(u, from, to int) float64) (float64, Waits) {
	var micro, token round
	cross := func(u int, from, to D) float64 {
		if from == to {
			return 0
		}
		return send(u, int(from), int(to))
	}
	update := []float64{0} // by device
	for u, d := range place {
		s, in := unit(u, int(d)), 0.
		if u > 0 {
			in = cross(u-1, place[u-1], d)
		}
		// The host waits for a copy from its memory, and so does the device.
		micro.run(s.Issue+s.Copied, s.Forward+in+s.Copied)
		token.run(s.IssueToken+s.Copied, s.Token+in/tokensOf(w)+s.Copied)
		if more := int(d) + 1 - len(update); more > 0 {
			update = append(update, make([]float64, more)...)
		}
		update[d] += s.Update
	}
	for u := len(place) - 1; u >= 0 && w.Mode == costmodel.Train; u-- {
		s, in := unit(u, int(place[u])), 0.
		if u+1 < len(place) {
			in = cross(u, place[u+1], place[u]) // the gradient
		}
		micro.run(s.IssueBack, s.Backward+in)
	}
	// Updates are issued to all devices at once.
	seconds := micro.repeated(float64(max(1, w.MicroBatches))) + float64(w.NewTokens)*token.Device + slices.Max(update)
	return seconds, Waits{Micro: micro.waited, Token: token.waited, Host: micro.issued > micro.worked}
}

// tokensOf is how many tokens' outputs a micro-batch's output is.
func tokensOf(w *costmodel.Workload) float64 { return float64(max(1, w.Seq)) }

// Waits says who is waited for in a step of a device map. As a pass ends no
// sooner than its last kernel is issued, a micro-batch ends at the largest,
// over the number i of its passes (the units' forwards, then their backwards in
// reverse), of
//
//	the host's time of the first i passes + the devices' time of the others
//
// where i may be 0, a token likewise, and every further micro-batch takes the
// longer of the two sums. So the step is the largest, over all Waits, of a sum
// over units and crossings and the slowest device's update; each such sum is a
// bound on it.
type Waits struct {
	// Micro and Token are how many passes the host is waited for, in the first
	// micro-batch and in a token.
	Micro, Token int
	// Host: it sets the pace of further micro-batches.
	Host bool
}

// Unit is unit u's part of the sum, without its update.
func (a Waits) Unit(w *costmodel.Workload, units, u int, s UnitSeconds) float64 {
	forward, backward := s.Forward, s.Backward
	if u < a.Micro {
		forward = s.Issue
	}
	if backwardOf(units, u) < a.Micro {
		backward = s.IssueBack
	}
	more := s.Forward + s.Backward
	if a.Host {
		more = s.Issue + s.IssueBack
	}
	token := s.Token
	if u < a.Token {
		token = s.IssueToken
	}
	return forward + backward + (float64(max(1, w.MicroBatches))-1)*more + float64(w.NewTokens)*token
}

// Crossings is how often the output of unit u, where it crosses to another
// device, counts in the sum: on its way there, and as a gradient back.
func (a Waits) Crossings(w *costmodel.Workload, units, u int) (there, back float64) {
	train, passes := w.Mode == costmodel.Train, float64(max(1, w.MicroBatches))
	if u+1 >= a.Micro {
		there = 1
	}
	if train && backwardOf(units, u) >= a.Micro {
		back = 1
	}
	if !a.Host {
		there += passes - 1
		if train {
			back += passes - 1
		}
	}
	if u+1 >= a.Token {
		there += float64(w.NewTokens) / tokensOf(w)
	}
	return there, back
}

// backwardOf is the number of unit u's backward among the passes.
func backwardOf(units, u int) int { return 2*units - 1 - u }
