// Package stagechain cuts a chain of units into a pipeline whose stages may each
// take several devices of one kind. What a stage costs is the caller's to say, of
// any form, as long as it does not fall where more stages follow.
//
// It is the two-level dynamic programme of Tarnawski et al., "Piper:
// Multidimensional Planner for DNN Parallelization" (NeurIPS 2021), §4, over a
// chain, asked under a limit on the slowest stage: then only the pipelines count
// that no other dominates in devices, stages and time so far.
package stagechain

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Problem is a chain of units, and identical devices. A pipeline uses all of
// them.
type Problem struct {
	Units, Devices int
	// MostStages bounds the stages.
	MostStages int
	// Sizes are how many devices a stage may take, each number once.
	Sizes []int
	// Time is that of units [from, to) as one stage of Sizes[size] before so many
	// others; +Inf if its memory or a rule forbids it. It may not fall with more
	// stages after it.
	Time func(from, to, size, behind int) float64
	// The value of a pipeline is Steady times its slowest stage and Fill times
	// the sum of all: 1 and 0 for the time a micro-batch, m − 1 and 1 for a step
	// of m micro-batches that pass one after the other.
	Steady, Fill float64
}

// Stage is units [From, To) on Sizes[Size] devices, and what it takes.
type Stage struct {
	From, To, Size int
	Time           float64
}

// Solution is a pipeline, certified by [Problem.Score].
type Solution struct {
	certificate.Certificate
	Stages []Stage
	Method string
}

// ErrNone says that no pipeline is allowed.
var ErrNone = errors.New("no pipeline of stages is allowed")

// Check reports every fault of the problem's form.
func (problem *Problem) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(problem.Units < 1, "%d units", problem.Units)
	wrong(problem.Devices < 1, "%d devices", problem.Devices)
	wrong(problem.MostStages < 1 || problem.MostStages > math.MaxInt16, "at most %d stages", problem.MostStages)
	wrong(len(problem.Sizes) == 0, "no size that a stage may have")
	wrong(problem.Time == nil, "no time of a stage")
	for i, size := range problem.Sizes {
		wrong(size < 1 || slices.Contains(problem.Sizes[:i], size), "sizes[%d]: %d devices", i, size)
	}
	for _, factor := range []float64{problem.Steady, problem.Fill} {
		wrong(!(factor >= 0) || math.IsInf(factor, 1), "a factor of %v", factor)
	}
	wrong(problem.Steady+problem.Fill == 0, "nothing to minimise: both factors are 0")
	return errors.Join(faults...)
}

// Score judges a pipeline from the definitions alone: its value, with the time
// of each stage put in, or the rule that it breaks.
func (problem *Problem) Score(stages []Stage) (value float64, err error) {
	sum, largest, at, devices := 0., 0., problem.Units, 0
	for i := len(stages) - 1; i >= 0; i-- {
		stage := &stages[i]
		if stage.To != at || stage.From >= at || stage.From < 0 {
			return 0, fmt.Errorf("stage %d takes units [%d, %d) before unit %d", i, stage.From, stage.To, at)
		}
		if stage.Time = problem.Time(stage.From, stage.To, stage.Size, len(stages)-1-i); !fine(stage.Time) {
			return 0, fmt.Errorf("stage %d, units [%d, %d): a time of %v", i, stage.From, stage.To, stage.Time)
		}
		sum, largest, at, devices = sum+stage.Time, max(largest, stage.Time), stage.From, devices+problem.Sizes[stage.Size]
	}
	switch {
	case at != 0:
		return 0, fmt.Errorf("units [0, %d) are in no stage", at)
	case devices != problem.Devices:
		return 0, fmt.Errorf("%d devices of %d", devices, problem.Devices)
	case len(stages) > problem.MostStages:
		return 0, fmt.Errorf("%d stages of at most %d", len(stages), problem.MostStages)
	}
	return problem.value(largest, sum), nil
}

func (problem *Problem) value(largest, sum float64) float64 {
	return problem.Steady*largest + problem.Fill*sum
}

// fine: finite and not negative.
func fine(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }
