package stagechain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// leveller finds the pipeline with the fastest slowest stage if sums do not count. It bisects over
// a limit. Under a limit, only the fewest stages from a unit on with so many devices matter: a
// stage is no slower with fewer stages after it.
type leveller struct {
	*Problem
	stages []Stage
	// value is the value of stages, and low a lower bound.
	low, value float64
	// deepest, by size and stretch, is the most later stages with which the stretch is within the
	// limit; −1: none. floor is deepest for low, and roof for value. Any limit between has a value
	// between these.
	floor, roof, deepest [][]int16
	// fewest, by unit and devices, is the number of stages from there on.
	fewest [][]int16
}

// never is larger than any number of stages.
const never = math.MaxInt16

func newLeveller(problem *Problem) *leveller {
	call := &leveller{Problem: problem, value: math.Inf(1)}
	stretches := problem.Units * (problem.Units + 1)
	for range problem.Sizes {
		call.floor = append(call.floor, slices.Repeat([]int16{-1}, stretches))
		call.roof = append(call.roof, slices.Repeat([]int16{int16(problem.MostStages - 1)}, stretches))
		call.deepest = append(call.deepest, make([]int16, stretches))
	}
	for range problem.Units + 1 {
		call.fewest = append(call.fewest, make([]int16, problem.Devices+1))
	}
	return call
}

// level returns the answer, proved if ctx lasts. If ctx ends, it returns the best answer so far
// with the bound so far, or ctx's error if there is no answer.
func (problem *Problem) level(ctx context.Context) (*Solution, error) {
	call := newLeveller(problem)
	limit := math.MaxFloat64
	call.equalParts()
	if call.stages != nil {
		limit = call.next()
	}
	for call.low < call.value && call.ask(ctx, limit) {
		limit = call.next()
	}
	switch {
	case call.stages != nil:
		return call.answer(call.low < call.value)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no pipeline found in the time given: %w", context.Cause(ctx))
	}
	return nil, ErrNone
}

// equalParts takes the best pipeline whose stages have equal numbers of units and devices, so that
// there is an answer if ctx ends early.
func (call *leveller) equalParts() {
	for size, devices := range call.Sizes {
		stages := make([]Stage, call.Devices/devices)
		for i := range stages {
			stages[i] = Stage{From: i * call.Units / len(stages), To: (i + 1) * call.Units / len(stages), Size: size}
		}
		if value, err := call.Score(stages); err == nil && value < call.Steady*call.value {
			call.take(stages)
		}
	}
}

// next returns the limit that halves the open range. If the range is small, it returns the limit
// just below the value, which decides it.
func (call *leveller) next() float64 {
	const little = 1e-6
	if call.value-call.low <= little*call.value {
		return math.Nextafter(call.value, 0)
	}
	return call.low + (call.value-call.low)/2
}

// ask looks for a pipeline under a limit and narrows the open range. It returns false if ctx ended
// first.
func (call *leveller) ask(ctx context.Context, limit float64) bool {
	for _, row := range call.fewest {
		for devices := range row {
			row[devices] = never
		}
	}
	call.fewest[call.Units][0] = 0
	for to := call.Units; to > 0; to-- {
		if ctx.Err() != nil {
			return false
		}
		for from := to - 1; from >= 0; from-- {
			call.stretch(from, to, limit)
		}
	}
	if call.fewest[0][call.Devices] == never {
		call.low, call.floor, call.deepest = limit, call.deepest, call.floor
		if limit >= math.Nextafter(call.value, 0) { // nothing is between
			call.low = call.value
		}
		return true
	}
	call.take(call.found())
	call.roof, call.deepest = call.deepest, call.roof
	return true
}

func (call *leveller) take(stages []Stage) {
	call.stages, call.value = stages, 0
	for i, stage := range stages {
		call.value = max(call.value, call.Time(stage.From, stage.To, stage.Size, len(stages)-1-i))
	}
}

// stretch puts units [from, to) before every partial pipeline at to.
func (call *leveller) stretch(from, to int, limit float64) {
	at := from*(call.Units+1) + to
	for size, devices := range call.Sizes {
		low, high := int(call.floor[size][at]), int(call.roof[size][at])
		deep := low + sort.Search(high-low, func(more int) bool { return !(call.Time(from, to, size, low+1+more) <= limit) })
		call.deepest[size][at] = int16(deep)
		if deep < 0 || devices > call.Devices {
			continue
		}
		rest, out := call.fewest[to][:call.Devices-devices+1], call.fewest[from][devices:]
		for left, stages := range rest {
			if int(stages) <= deep && stages+1 < out[left] {
				out[left] = stages + 1
			}
		}
	}
}

// found returns the pipeline of the last ask.
func (call *leveller) found() (stages []Stage) {
	devices := call.Devices
	for from := 0; from < call.Units; {
		stage := call.begins(from, devices)
		stages = append(stages, stage)
		from, devices = stage.To, devices-call.Sizes[stage.Size]
	}
	return stages
}

// begins returns a stage from a unit on with the fewest stages after it.
func (call *leveller) begins(from, devices int) Stage {
	for to := call.Units; to > from; to-- {
		for size, takes := range call.Sizes {
			if takes > devices {
				continue
			}
			behind := call.fewest[to][devices-takes]
			if behind+1 == call.fewest[from][devices] && behind <= call.deepest[size][from*(call.Units+1)+to] {
				return Stage{From: from, To: to, Size: size}
			}
		}
	}
	return Stage{From: from, To: call.Units} // unreachable: fewest has such a stage; Score would refuse it
}

func (call *leveller) answer(stopped bool) (*Solution, error) {
	return call.certified(call.stages, certificate.Claim{
		Value: call.Steady * call.value, LowerBound: call.Steady * call.low, Rounding: certificate.Exact, Stopped: stopped,
		Bound: "bisection over the time of the slowest stage, dynamic programming over the stages' ends and devices",
	})
}
