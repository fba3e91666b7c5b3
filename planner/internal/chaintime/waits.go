package chaintime

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// A step is the largest, over all [steptime.Waits], of a sum over units and what
// crosses between them ([steptime.Sequential] simulates it): these are its parts.
// They are what a dynamic program and a bound can add up.

// weighted is a unit's part of the sum at given waits, without its update.
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

// crossings is how often the output of a unit, where it crosses to another
// device, counts in the sum: on its way there, as a gradient back, and as the
// part of it that is one token.
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
	case workload.Runtime == costmodel.Devmap: // which rounds each
		token = tokens
	default:
		there += tokens / float64(max(1, workload.Seq))
	}
	return there, back, token
}

// backwardOf is the number of a unit's backward among the passes.
func backwardOf(units, unit int) int { return 2*units - 1 - unit }
