// Package stagechain cuts a chain of units into a pipeline whose stages may each take several
// devices of one kind. The caller defines the cost of a stage. It may have any form that does not
// fall when more stages follow.
//
// It is the two-level dynamic program of Tarnawski et al., "Piper: Multidimensional Planner for DNN
// Parallelization" (NeurIPS 2021), §4, over a chain, under a limit on the slowest stage. Under a
// limit, only pipelines count that no other dominates in devices, stages and time so far.
package stagechain

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Problem is a chain of units and identical devices. A pipeline uses all devices.
type Problem struct {
	Units, Devices int
	// MostStages is the most stages.
	MostStages int
	// Sizes are the numbers of devices that a stage may take, each once.
	Sizes []int
	// Time returns the time of units [from, to) as one stage of Sizes[size] devices with behind
	// stages after it; +Inf if its memory or a rule forbids it. It may not fall with more stages
	// after it.
	Time func(from, to, size, behind int) float64
	// A pipeline's value is Steady times its slowest stage plus Fill times the sum of all stages.
	// Use 1 and 0 for the time per micro-batch, and m − 1 and 1 for a step of m consecutive
	// micro-batches.
	Steady, Fill float64
}

// Stage is units [From, To) on Sizes[Size] devices, and its time.
type Stage struct {
	From, To, Size int
	Time           float64
}

// Solution is a pipeline, certified by [Problem.Score].
type Solution struct {
	certificate.Certificate
	Stages []Stage
}

// ErrNone says that no pipeline is allowed.
var ErrNone = errors.New("no pipeline of stages is allowed")

// Check reports every malformed field.
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

// Score evaluates a pipeline from the definitions. It returns the value and fills in each stage's
// time, or returns an error for a broken rule.
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

// fine reports a finite value that is not negative.
func fine(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }
