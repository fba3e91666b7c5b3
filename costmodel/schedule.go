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

// Action is a forward or a backward of one micro-batch through one chunk.
type Action struct {
	Backward          bool
	Chunk, MicroBatch int64
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
		if s.MicroBatches%s.rounds() == 0 {
			return nil
		}
		e := &ScheduleError{s, fmt.Sprintf("takes a multiple of its %d rounds", s.rounds()), s.MicroBatches, s.MicroBatches}
		for t := s; t.MicroBatches%t.rounds() != 0; t.MicroBatches-- {
			e.Below = t.MicroBatches - 1
		}
		for t := s; t.MicroBatches%t.rounds() != 0; t.MicroBatches++ {
			e.Above = t.MicroBatches + 1
		}
		return e
	default:
		return nil
	}
	return nil
}

// rounds and perRound are ScheduleInterleaved1F1B's number_of_rounds and
// microbatches_per_round.
func (s Schedule) rounds() int64   { return max(1, s.MicroBatches/s.Stages) }
func (s Schedule) perRound() int64 { return s.MicroBatches / s.rounds() }

// InFlight is the number of forwards that a rank runs before its first
// backward has ended: what it keeps activations of at once, counted in
// chunks. For 1F1B it is min(m, p − rank) (Narayanan et al., SC 2021, §2.2.1;
// schedules.py Schedule1F1B._step_microbatches, warmup_chunks).
func (s Schedule) InFlight(rank int64) int64 {
	switch s.Kind {
	case OneFOneB:
		return min(s.MicroBatches, s.Stages-rank)
	case Interleaved:
		return min(s.warmUp(rank)+1, s.Chunks*s.MicroBatches)
	default:
		return s.MicroBatches
	}
}

// warmUp is schedules.py _get_warmup_ops with its multiply_factor of 2.
func (s Schedule) warmUp(rank int64) int64 {
	return min((s.Chunks-1)*s.perRound()+2*(s.Stages-1-rank), s.Chunks*s.MicroBatches)
}

// Order is what a rank does, in order.
func (s Schedule) Order(rank int64) []Action {
	if s.Kind == Interleaved {
		return s.interleaved(rank)
	}
	// Both run forwards up to InFlight, then backwards and forwards in turn:
	// GPipe has no forwards left by then.
	out := make([]Action, 0, 2*s.MicroBatches)
	warm := s.InFlight(rank)
	for i := range warm {
		out = append(out, Action{false, 0, i})
	}
	for i := range s.MicroBatches {
		out = append(out, Action{true, 0, i})
		if warm+i < s.MicroBatches {
			out = append(out, Action{false, 0, warm + i})
		}
	}
	return out
}

// interleaved is schedules.py _get_1f1b_rank_ops, with
// ScheduleInterleaved1F1B's forward_stage_index and backward_stage_index: the
// chunks take turns, a round of micro-batches each.
func (s Schedule) interleaved(rank int64) []Action {
	warm, all := s.warmUp(rank), s.Chunks*s.MicroBatches
	forwards, backwards := make([]int64, s.Chunks), make([]int64, s.Chunks)
	out := make([]Action, 0, 2*all)
	for op := range warm + all {
		if op < all {
			c := op / s.perRound() % s.Chunks
			out = append(out, Action{false, c, forwards[c]})
			forwards[c]++
		}
		if op >= warm {
			c := s.Chunks - 1 - (op-warm)/s.perRound()%s.Chunks
			out = append(out, Action{true, c, backwards[c]})
			backwards[c]++
		}
	}
	return out
}
