package costmodel

import (
	"cmp"
	"fmt"
)

// Schedule is a pipeline's: Stages GPUs, each with Chunks runs of the chain (1, or more when
// interleaved or a V), and MicroBatches parts of the batch. Chunk c of rank r is run
// [Schedule.Stage].
type Schedule struct {
	Kind                         ScheduleKind
	Stages, Chunks, MicroBatches int64
	// AnyMicroBatches is [StageRules.AnyMicroBatches] of the engine.
	AnyMicroBatches bool
	WholeRounds     bool // [StageRules.WholeRounds]
}

// NewSchedule is a workload's schedule on so many GPUs, each with so many runs of the chain. It has
// no kind if the workload is no pipeline.
func NewSchedule(workload *Workload, stages, chunks int64) Schedule {
	out := Schedule{Stages: stages, Chunks: chunks, MicroBatches: max(1, workload.MicroBatches)}
	rules := StageRulesOf(workload.Runtime)
	out.AnyMicroBatches, out.WholeRounds = rules.AnyMicroBatches, rules.WholeRounds
	if workload.Strategy.Traits().Staged {
		out.Kind = cmp.Or(workload.Schedule, OneFOneB)
	}
	return out
}

// scheduleError is a number of micro-batches that the engine refuses.
type scheduleError struct {
	Schedule     Schedule
	Rule         string
	Below, Above int64 // the nearest numbers that work; Below is 0 if none does
}

// Error implements error.
func (err *scheduleError) Error() string {
	works := fmt.Sprintf("%d works", err.Above)
	if err.Below > 0 {
		works = fmt.Sprintf("%d and %d work", err.Below, err.Above)
	}
	parts := "micro-batches"
	if err.Schedule.MicroBatches == 1 {
		parts = "micro-batch"
	}
	return fmt.Sprintf("%d %s on %d stages: %s %s (%s)", err.Schedule.MicroBatches, parts, err.Schedule.Stages, err.Schedule.Kind, err.Rule, works)
}

// Check refuses numbers of micro-batches that the engine refuses. torch 2.11
// (distributed/pipelining/schedules.py): Schedule1F1B wants as many as stages or more,
// ScheduleInterleaved1F1B a multiple of its rounds.
func (schedule Schedule) Check() error {
	if schedule.Kind.OwnOrder() {
		return schedule.checkRows()
	}
	switch schedule.Kind {
	case OneFOneB:
		if !schedule.AnyMicroBatches && schedule.MicroBatches < schedule.Stages {
			return &scheduleError{schedule, "takes at least as many micro-batches as stages", 0, schedule.Stages}
		}
	case Interleaved:
		return schedule.checkRounds()
	case GPipe, ZBH1:
	case ZBV, VHalf, VMin:
		if schedule.Chunks != 2 {
			return Refuse(Set("virtual_stages", schedule.Chunks), "%s has two stages on each GPU, in the form of a V, not %d", schedule.Kind, schedule.Chunks)
		}
	default:
		return Refuse(Set("schedule", schedule.Kind), "%q is unknown (known: %s)", schedule.Kind, known())
	}
	return nil
}

// checkRounds refuses micro-batches that do not fill the rounds of an interleaved schedule.
func (schedule Schedule) checkRounds() error {
	if schedule.WholeRounds { // Megatron-Core 0.19, schedules.py
		if over := schedule.MicroBatches % schedule.Stages; over != 0 {
			return &scheduleError{schedule, fmt.Sprintf("takes rounds of %d", schedule.Stages), schedule.MicroBatches - over, schedule.MicroBatches - over + schedule.Stages}
		}
		return nil
	}
	if schedule.AnyMicroBatches || schedule.MicroBatches%schedule.rounds() == 0 {
		return nil
	}
	err := &scheduleError{schedule, fmt.Sprintf("takes a multiple of its %d rounds", schedule.rounds()), schedule.MicroBatches, schedule.MicroBatches}
	for t := schedule; t.MicroBatches%t.rounds() != 0; t.MicroBatches-- {
		err.Below = t.MicroBatches - 1
	}
	for t := schedule; t.MicroBatches%t.rounds() != 0; t.MicroBatches++ {
		err.Above = t.MicroBatches + 1
	}
	return err
}

// rounds is ScheduleInterleaved1F1B's number_of_rounds.
func (schedule Schedule) rounds() int64 { return max(1, schedule.MicroBatches/schedule.Stages) }

// Interval is the units [First, End) of a chain.
type Interval struct{ First, End int }
