package steptime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// Stage are the times of a pipeline's stage in seconds, for a micro-batch: the device's passes, the
// host's to issue them, and messages to the next stage (To) and gradients from it (From).
type Stage struct {
	// Rank holds the stage.
	Rank                                int
	Forward, Backward, Issue, IssueBack float64
	To, From                            float64
}

// takes is the host's and the device's time for an action.
func (stage *Stage) takes(backward bool) (issue, length float64) {
	if backward {
		return stage.IssueBack, stage.Backward
	}
	return stage.Issue, stage.Forward
}

// Simulate runs a schedule on stages in the order of the chain, at most as many as the schedule has
// chunks. It returns the end of each rank's device in seconds; inference skips backwards. A message
// of +Inf (no link) never arrives; a schedule that is not simulated never ends.
//
// Under GPipe and 1F1B, with a stage a rank, an action starts when its rank is free and its input
// is there. Ranks of an interleaved schedule share one table of time steps ([order.Column]), and
// exchange messages after each. Memory does not depend on the number of micro-batches, and time
// only on its digits.
func Simulate(schedule costmodel.Schedule, train bool, stages []Stage) []float64 {
	return simulateStages(schedule, train, stages, nil)
}

// simulateStages is [Simulate] with a recorder. It records a span's stage as its first unit, and its
// rank as its device ([recorder.ofStages]).
func simulateStages(schedule costmodel.Schedule, train bool, stages []Stage, record *recorder) []float64 {
	ends := make([]float64, schedule.Stages)
	endless := !simulates(schedule.Kind)
	for i := range stages {
		endless = endless || math.IsInf(max(stages[i].To, stages[i].From), 1)
	}
	if endless {
		for rank := range ends {
			ends[rank] = math.Inf(1)
		}
		return ends
	}
	simulate := simulateWaves
	if schedule.Kind.Loops() {
		simulate = simulateLockStep
	}
	clocks := make([]deviceClock, schedule.Stages)
	simulate(clocks, schedule, train, stages, record)
	for rank := range clocks {
		ends[rank] = clocks[rank].Device
	}
	return ends
}

// simulates reports an order that can be simulated.
func simulates(kind costmodel.ScheduleKind) bool {
	return kind == costmodel.GPipe || kind == costmodel.OneFOneB || kind == costmodel.Interleaved || kind.OwnOrder()
}
