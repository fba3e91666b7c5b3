package order

import "github.com/devmap-dev/devmap/costmodel"

// Phase is a list of actions that a rank runs Times times. Their micro-batches are those of the
// first time; each later time adds Advance. A schedule has few phases for any number of
// micro-batches, so more micro-batches take no more time or memory.
type Phase struct {
	Actions []Action
	Times   int64
	Advance int64
}

// Phases returns the actions of [Of] as phases.
func Phases(schedule costmodel.Schedule, rank int64) []Phase {
	switch schedule.Kind {
	case costmodel.Interleaved:
		return interleavedPhases(schedule, rank)
	case inTurn:
		one := schedule
		one.MicroBatches = min(1, schedule.MicroBatches)
		return phases(Phase{turns(one), schedule.MicroBatches, 1})
	case costmodel.ZBH1, costmodel.ZBV, costmodel.VHalf, costmodel.VMin:
		return splitPhases(schedule, rank)
	case costmodel.OneFOneB, costmodel.GPipe:
	case costmodel.AutoSchedule: // inFlight is 0
	}
	if schedule.Kind.OwnOrder() {
		return given(schedule, rank)
	}
	warm := inFlight(schedule, rank)
	if warm == 0 {
		return nil
	}
	back := schedule.MicroBatches - warm // the first backward that no forward follows
	return phases(
		Phase{[]Action{{Forward, 0, 0}}, warm, 1},
		Phase{[]Action{{Backward, 0, 0}, {Forward, 0, warm}}, back, 1},
		Phase{[]Action{{Backward, 0, back}}, warm, 1},
	)
}

// interleavedPhases repeats a rank's actions while each of its chunks has a whole round of
// micro-batches. The remaining actions, and those of a shorter round, come after and run once.
func interleavedPhases(schedule costmodel.Schedule, rank int64) []Phase {
	filled := whole(schedule)
	per := perRound(schedule)
	round, warm, all := filled.Chunks*per, warmUp(filled, rank), filled.Chunks*filled.MicroBatches
	full := schedule.MicroBatches / per * round // actions in whole rounds
	var out []Phase
	stretch := func(from, to, full int64, of func(op int64) []Action) {
		row := func(from, to int64) (actions []Action) {
			for op := from; op < to; op++ {
				for _, action := range of(op) {
					if action.MicroBatch < schedule.MicroBatches {
						actions = append(actions, action)
					}
				}
			}
			return actions
		}
		times := max(0, min(to, full)-from) / round
		if times > 0 {
			out = append(out, Phase{row(from, from+round), times, per})
		}
		out = append(out, Phase{row(from+times*round, to), 1, 0})
	}
	stretch(0, warm, full, func(op int64) []Action { return []Action{forward(filled, op)} })
	stretch(0, all-warm, full-warm, func(op int64) []Action { return []Action{forward(filled, warm+op), backward(filled, op)} })
	stretch(all-warm, all, full, func(op int64) []Action { return []Action{backward(filled, op)} })
	return phases(out...)
}

// forward and backward return an interleaved rank's actions by number: the chunks alternate, with
// one round of micro-batches each (schedules.py, forward_stage_index and backward_stage_index).
func forward(schedule costmodel.Schedule, op int64) Action {
	return Action{Forward, op / perRound(schedule) % schedule.Chunks, op/(schedule.Chunks*perRound(schedule))*perRound(schedule) + op%perRound(schedule)}
}

func backward(schedule costmodel.Schedule, op int64) Action {
	action := forward(schedule, op)
	return Action{Backward, schedule.Chunks - 1 - action.Chunk, action.MicroBatch}
}

// phases returns the phases that are not empty.
func phases(all ...Phase) (out []Phase) {
	for _, phase := range all {
		if phase.Times > 0 && len(phase.Actions) > 0 {
			out = append(out, phase)
		}
	}
	return out
}

// Ends runs the first, the second and the last time of a phase. Every time from the second on must
// change the state by the same amount. It calls second before the second time, and skip after it
// with the number of times left out. A maximum over the phase is in one of the three times, as the
// state grows or shrinks evenly.
func (phase *Phase) Ends(run func(Action), second func(), skip func(times int64)) {
	for count := int64(0); count < phase.Times; count++ {
		if count == 1 {
			second()
		}
		if count == 2 && phase.Times > 3 {
			skip(phase.Times - 3)
			count = phase.Times - 1
		}
		for _, action := range phase.Actions {
			run(action)
		}
	}
}
