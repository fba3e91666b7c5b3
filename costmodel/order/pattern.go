package order

import (
	"math"
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
)

// interval is the time between two micro-batches of a pattern: F, I and W of both chunks, each of
// one unit of time.
const interval = 6

// The widest steps between ranks and between the ways of a pattern that are tried.
const (
	widestStep = 3
	widestTurn = 5
)

// pattern is the block of a V-shaped schedule: the six actions of one micro-batch on each rank, with
// their times. The next micro-batch runs the same block, one interval later (arXiv 2405.15362, §3).
type pattern [][]timed // by rank, in the order of the times

type timed struct {
	Action
	at int64
}

// newPattern makes the pattern of four ways through the V: forward down and back, gradients down
// and back. Way w takes steps[w] units from a rank to the next, and starts turns[w−1] after the
// last way ends. W takes the first free unit after its I. It is false if two actions of a rank
// share a unit.
func newPattern(ranks int64, steps [4]int64, turns [3]int64) (pattern, bool) {
	out := make(pattern, ranks)
	for rank := range ranks {
		var used [interval]bool
		row := make([]timed, 0, interval)
		start, ok := int64(0), true
		waits := [len(steps)]int64{turns[0], turns[1], turns[2]} // none after the last way
		take := func(kind Kind, chunk, at int64) {
			ok = ok && !used[at%interval]
			used[at%interval] = true
			row = append(row, timed{Action{Kind: kind, Chunk: chunk}, at})
		}
		for way, step := range steps {
			along := rank
			if way%2 == 1 {
				along = ranks - 1 - rank
			}
			kind, chunk := Forward, int64(way)
			if way > 1 {
				kind, chunk = Input, int64(3-way)
			}
			take(kind, chunk, start+along*step)
			start += (ranks-1)*step + waits[way]
		}
		if !ok {
			return nil, false
		}
		for _, input := range []timed{row[2], row[3]} {
			at := input.at + 1
			for used[at%interval] {
				at++
			}
			take(Weight, input.Chunk, at)
		}
		slices.SortFunc(row, func(one, other timed) int { return int(one.at - other.at) })
		out[rank] = row
	}
	return out, true
}

// alive returns the most chunks that a rank has between F and the end of W while the pattern
// repeats.
func (pattern pattern) alive() (most int64) {
	for _, row := range pattern {
		for phase := range int64(interval) {
			count := int64(0)
			for _, action := range row {
				switch action.Kind { // actions that have begun or ended by now, of all micro-batches from the first
				case Forward:
					count += (phase - action.at + interval<<20) / interval
				case Weight:
					count -= (phase - action.at - 1 + interval<<20) / interval
				case Backward, Input:
				}
			}
			most = max(most, count)
		}
	}
	return most
}

// rows returns the actions of every rank for so many micro-batches, in the order of their times.
func (pattern pattern) rows(batches int64) [][]Action {
	out := make([][]Action, len(pattern))
	for rank, row := range pattern {
		all := make([]timed, 0, interval*batches)
		for batch := range batches {
			for _, action := range row {
				action.MicroBatch, action.at = batch, action.at+batch*interval
				all = append(all, action)
			}
		}
		slices.SortFunc(all, func(one, other timed) int { return int(one.at - other.at) })
		out[rank] = make([]Action, len(all))
		for i := range all {
			out[rank][i] = all[i].Action
		}
	}
	return out
}

// candidate is a pattern, and the units of time by which its rows outlast the work of a rank.
type candidate struct {
	pattern
	idle int64
}

// candidates returns, for each number of chunks alive up to most, the pattern whose rows end first.
func candidates(ranks, most int64) map[int64]candidate {
	out := make(map[int64]candidate)
	schedule := costmodel.Schedule{Kind: costmodel.VHalf, Stages: ranks, Chunks: 2, MicroBatches: 2 * ranks}
	digits := func(number, base int64, into []int64) {
		for i := range into {
			into[i], number = 1+number%base, number/base
		}
	}
	var steps [4]int64
	var turns [3]int64
	for number := range int64(widestStep * widestStep * widestStep * widestStep) {
		digits(number, widestStep, steps[:])
		for turn := range int64(widestTurn * widestTurn * widestTurn) {
			digits(turn, widestTurn, turns[:])
			made, ok := newPattern(ranks, steps, turns)
			if !ok {
				continue
			}
			alive := made.alive()
			if alive > most {
				continue
			}
			idle := span(schedule, made.rows(schedule.MicroBatches)) - interval*schedule.MicroBatches
			if best, ok := out[alive]; !ok || idle < best.idle {
				out[alive] = candidate{made, idle}
			}
		}
	}
	return out
}

// patterns keeps the patterns that were found, by kind and ranks.
var patterns sync.Map // costmodel.Schedule → pattern

// patternOf selects the pattern of V-Half or V-Min. The paper's memory is ⌈p/2⌉ + 1 and ⌈p/3⌉ + 1
// micro-batches, of two chunks each. V-Min takes the fewest chunks alive. V-Half takes from half of
// 1F1B's chunks on the least sum of chunks alive and units waited: fewer chunks alone are V-Min.
func patternOf(schedule costmodel.Schedule) pattern {
	ranks := schedule.Stages
	key := costmodel.Schedule{Kind: schedule.Kind, Stages: ranks}
	if known, ok := patterns.Load(key); ok {
		found, _ := known.(pattern)
		return found
	}
	all := candidates(ranks, ranks+2)
	var best pattern
	least := int64(math.MaxInt64)
	for alive := int64(1); alive <= ranks+2; alive++ {
		found, ok := all[alive]
		if !ok || schedule.Kind == costmodel.VHalf && alive < ranks {
			continue
		}
		if schedule.Kind == costmodel.VMin {
			best = found.pattern
			break
		}
		short := costmodel.Schedule{Kind: schedule.Kind, Stages: ranks, Chunks: 2, MicroBatches: 2 * ranks}
		idle := span(short, squeeze(short, found.rows(short.MicroBatches))) - interval*short.MicroBatches
		if alive+idle < least {
			best, least = found.pattern, alive+idle
		}
	}
	patterns.Store(key, best)
	return best
}
