package chaintime

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// A step is the largest sum over all [steptime.Waits], of the parts of units and their transfers
// ([steptime.Sequential] simulates it). A dynamic program and a bound can add these parts.

// weighted returns a unit's part of the sum at given waits, without its update.
func weighted(workload *costmodel.Workload, waits steptime.Waits, units, unit int, seconds *steptime.UnitSeconds) float64 {
	forward, backward := seconds.Forward, seconds.Backward
	if unit < waits.Micro {
		forward = seconds.Issue
	}
	if backwardOf(units, unit) < waits.Micro {
		backward = seconds.IssueBack
	}
	more := seconds.Forward + seconds.Backward
	if waits.Host {
		more = seconds.Issue + seconds.IssueBack
	}
	token := seconds.Token
	if unit < waits.Token {
		token = seconds.IssueToken
	}
	return forward + backward + (float64(max(1, workload.MicroBatches))-1)*more + steptime.TokenPasses(workload)*token
}

// crossings returns how often a unit's output counts in the sum if it crosses: forward, back as a
// gradient, and as its part for one token.
func crossings(workload *costmodel.Workload, waits steptime.Waits, units, unit int) (there, back, token float64) {
	train, passes := workload.Mode == costmodel.Train, float64(max(1, workload.MicroBatches))
	if unit+1 >= waits.Micro {
		there = 1
	}
	if train && backwardOf(units, unit) >= waits.Micro {
		back = 1
	}
	if !waits.Host {
		there += passes - 1
		if train {
			back += passes - 1
		}
	}
	switch tokens := steptime.TokenPasses(workload); {
	case unit+1 < waits.Token:
	case workload.Runtime == costmodel.Devmap: // devmap rounds each one
		token = tokens
	default:
		there += tokens / float64(max(1, workload.Seq))
	}
	return there, back, token
}

// backwardOf returns the position of a unit's backward among all passes.
func backwardOf(units, unit int) int { return 2*units - 1 - unit }
