package steptime

import (
	"math"
	"slices"
)

// longRow is the number of times of a row from which repetition is looked for; maxStates is the
// number of states to compare, stallLimit the number of jobs to simulate after that.
const (
	longRow    = 24
	maxStates  = 256
	stallLimit = 1 << 20
)

// repeats simulates a line and skips repetition. The first rank stops after every time of a long
// row, until nothing else can run. Relative to its clock, the rest is the state. Equal states have
// equal futures, so the jobs between them are skipped as often as they recur.
//
// A simulation of integers with sums and maxima reaches equal states (Baccelli, Cohen, Olsder and
// Quadrat, Synchronization and Linearity, 1992, theorem 3.112), usually within a few micro-batches.
// If it takes more than maxStates and many jobs are left, the last states represent the rest, and
// the step is approximate.
func (line *line) repeats() {
	first := &line.ranks[0]
	for first.row < len(first.rows) {
		if first.rows[first.row].times < longRow {
			first.untilRow, first.untilTimes = int64(first.row)+1, 0
			line.simulate()
			if int64(first.row) != first.untilRow {
				return // it waits for its own message
			}
			continue
		}
		if !line.longRow(first) {
			return
		}
	}
	first.untilRow = math.MaxInt64
	line.simulate()
}

// longRow simulates one row of the first rank; false if it cannot.
func (line *line) longRow(first *simulatedRank) bool {
	var states []state
	row, looks := first.row, true
	for first.row == row {
		first.untilRow, first.untilTimes = int64(row), first.times+1
		if first.untilTimes == first.rows[row].times {
			first.untilRow, first.untilTimes = int64(row)+1, 0
		}
		before := first.times
		line.simulate()
		if first.row == row && first.times == before {
			return false
		}
		if first.row != row || !looks {
			continue
		}
		now := line.state()
		if same := matching(states, &now, func(before *state) bool { return slices.Equal(before.clocks, now.clocks) }); same != nil {
			line.pass(same, &now)
			looks = false // the rest is simulated
			continue
		}
		states = append(states, now)
		if looks = len(states) < maxStates; !looks && line.left() > stallLimit {
			line.pass(matching(states[:maxStates/2], &now, func(*state) bool { return true }), &now)
		}
	}
	return true
}

// matching is the last state with the same places of ranks and messages that takes accepts; nil if none.
func matching(states []state, now *state, takes func(*state) bool) *state {
	for i := range slices.Backward(states) {
		if slices.Equal(states[i].places, now.places) && takes(&states[i]) {
			return &states[i]
		}
	}
	return nil
}

// left is how many jobs of this row are left to all ranks, about.
func (line *line) left() int64 {
	first := &line.ranks[0]
	row := &first.rows[first.row]
	return (row.times - first.times) * int64(len(row.jobs)*len(line.ranks))
}

// state is a line seen from the clock of its first rank: if all ranks and messages are, and since when.
type state struct {
	places, clocks []int64
	clock          int64
	times          []int64 // of each rank's row
}

func (line *line) state() state {
	out := state{clock: line.ranks[0].clock, times: make([]int64, len(line.ranks))}
	// A job that is over before its rank gets there does not matter.
	since := func(rank *simulatedRank, clock int64) {
		out.clocks = append(out.clocks, max(rank.clock, clock)-out.clock)
	}
	for i := range line.ranks {
		rank := &line.ranks[i]
		out.times[i] = rank.times
		out.places = append(out.places, int64(rank.row), int64(rank.action), flag(rank.half))
		since(rank, rank.clock)
		clocks := line.clocks(rank)
		out.places = append(out.places, int64(rank.copies.next%max(1, len(rank.copies.free))), int64(len(clocks)))
		for _, clock := range clocks { // a copy may have begun before its rank came to it
			out.clocks = append(out.clocks, *clock-out.clock)
		}
	}
	for i := range line.stages {
		for _, from := range []*buffer{&line.stages[i].out, &line.stages[i].dout} {
			out.places = append(out.places, flag(from.queued))
			since(from.owner, from.left)
		}
	}
	for i := range line.all {
		channel := &line.all[i]
		stream := channel.stream
		out.places = append(out.places, int64(len(stream.waiting)), int64(len(channel.free)), int64(len(channel.arrived)))
		since(stream.from, stream.clock)
		for _, free := range channel.free {
			since(stream.from, free)
		}
		for _, arrived := range channel.arrived {
			since(channel.to, arrived)
		}
		for _, next := range stream.waiting {
			out.places = append(out.places, int64(next.channel.number))
			out.clocks = append(out.clocks, next.ready-out.clock)
		}
	}
	return out
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// pass passes over what lies between two states as often as every rank's row takes it.
func (line *line) pass(from, to *state) {
	if from == nil {
		return
	}
	times := int64(math.MaxInt64)
	for i := range line.ranks {
		rank := &line.ranks[i]
		moved := to.times[i] - from.times[i]
		if moved < 0 || rank.row == len(rank.rows) {
			return
		}
		if moved > 0 {
			times = min(times, (rank.rows[rank.row].times-1-rank.times)/moved)
		}
	}
	if times <= 0 || times == math.MaxInt64 {
		return
	}
	line.passed++
	more := times * (to.clock - from.clock)
	for i := range line.ranks {
		line.ranks[i].times += times * (to.times[i] - from.times[i])
		line.ranks[i].clock += more
		line.shift(&line.ranks[i], more)
	}
	for i := range line.stages {
		line.stages[i].out.left += more
		line.stages[i].dout.left += more
	}
	for _, stream := range line.streams {
		stream.clock += more
		for i := range stream.waiting {
			stream.waiting[i].ready += more
		}
	}
	for i := range line.all {
		channel := &line.all[i]
		for i := range channel.free {
			channel.free[i] += more
		}
		for i := range channel.arrived {
			channel.arrived[i] += more
		}
	}
}
