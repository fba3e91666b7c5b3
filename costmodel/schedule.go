package costmodel

import "fmt"

// ScheduleKind is the order in which a pipeline runs its micro-batches.
type ScheduleKind string

// The schedules of the contract.
const (
	OneFOneB    ScheduleKind = "1f1b"
	GPipe       ScheduleKind = "gpipe"
	Interleaved ScheduleKind = "interleaved"
)

// Schedule is a pipeline's: Stages GPUs, each with Chunks runs of the chain
// (1, or more when interleaved), and MicroBatches parts of the batch. Chunk c
// of rank r is run c·Stages + r of the chain.
type Schedule struct {
	Kind                         ScheduleKind
	Stages, Chunks, MicroBatches int64
}

// ScheduleError is a number of micro-batches that the engine refuses.
type ScheduleError struct {
	Schedule     Schedule
	Rule         string
	Below, Above int64 // the nearest numbers that work; Below is 0 where none does
}

// Error implements error.
func (e *ScheduleError) Error() string {
	works := fmt.Sprintf("%d works", e.Above)
	if e.Below > 0 {
		works = fmt.Sprintf("%d and %d work", e.Below, e.Above)
	}
	parts := "micro-batches"
	if e.Schedule.MicroBatches == 1 {
		parts = "micro-batch"
	}
	return fmt.Sprintf("%d %s on %d stages: %s %s (%s)", e.Schedule.MicroBatches, parts, e.Schedule.Stages, e.Schedule.Kind, e.Rule, works)
}

// Check refuses what torch's classes refuse (torch 2.11,
// distributed/pipelining/schedules.py): Schedule1F1B.__init__ fewer
// micro-batches than stages, ScheduleInterleaved1F1B.__init__ a number that is
// no multiple of its rounds. A fault is a [*ScheduleError].
func (s Schedule) Check() error {
	switch s.Kind {
	case OneFOneB:
		if s.MicroBatches < s.Stages {
			return &ScheduleError{s, "takes at least as many micro-batches as stages", 0, s.Stages}
		}
	case Interleaved:
		if s.MicroBatches%s.Rounds() == 0 {
			return nil
		}
		e := &ScheduleError{s, fmt.Sprintf("takes a multiple of its %d rounds", s.Rounds()), s.MicroBatches, s.MicroBatches}
		for t := s; t.MicroBatches%t.Rounds() != 0; t.MicroBatches-- {
			e.Below = t.MicroBatches - 1
		}
		for t := s; t.MicroBatches%t.Rounds() != 0; t.MicroBatches++ {
			e.Above = t.MicroBatches + 1
		}
		return e
	default:
		return nil
	}
	return nil
}

// Rounds is ScheduleInterleaved1F1B's number_of_rounds.
func (s Schedule) Rounds() int64 { return max(1, s.MicroBatches/s.Stages) }
