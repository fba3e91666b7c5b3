// Package stagechain cuts a chain of units into a pipeline whose stages may
// each be replicated and tensor-parallel: a stage takes Data × Tensor devices of
// one kind. What a stage costs is the caller's to say, of any form, as long as
// it does not fall where more stages follow.
//
// It is the two-level dynamic programme of Tarnawski et al., "Piper:
// Multidimensional Planner for DNN Parallelization" (NeurIPS 2021), §4, over a
// chain, asked under a limit on the slowest stage: then only the pipelines count
// that no other beats in all of devices, replicas, stages and time so far.
package stagechain

import (
	"errors"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Degree is what a stage may be: Data replicas of Tensor devices each.
type Degree struct{ Data, Tensor int }

// Devices of a stage of this degree.
func (degree Degree) Devices() int { return degree.Data * degree.Tensor }

// After is what follows a stage: so many stages, with so many replicas and
// devices in all.
type After struct{ Stages, Replicas, Devices int }

// with is what follows the stage before one of this degree.
func (after After) with(degree Degree) After {
	return After{after.Stages + 1, after.Replicas + degree.Data, after.Devices + degree.Devices()}
}

// Problem is a chain of units, and devices that are all alike.
type Problem struct {
	Units, Devices int
	// Exactly: no device may be left over.
	Exactly bool
	// MostStages bounds the stages; 0: no bound.
	MostStages int
	// Degrees are those that a stage may have, no two alike.
	Degrees []Degree
	// Time is that of units [from, to) as one stage of Degrees[degree]; +Inf
	// where its memory or a rule forbids it. It may not fall as there is more
	// after it.
	Time func(from, to, degree int, after After) float64
	// Grows: nor does Time fall as the stage does, at either end. Else every
	// stretch of the chain is asked for.
	Grows bool
	// The value of a pipeline is Steady times its slowest stage and Fill times
	// the sum of all: 1 and 0 for the time a micro-batch, m − 1 and 1 for a step
	// of m micro-batches that pass one after the other.
	Steady, Fill float64
}

// Stage is units [From, To) with Degrees[Degree], and what it takes.
type Stage struct {
	From, To, Degree int
	Time             float64
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
	wrong(problem.MostStages < 0, "at most %d stages", problem.MostStages)
	wrong(len(problem.Degrees) == 0, "no degree that a stage may have")
	wrong(problem.Time == nil, "no time of a stage")
	for i, degree := range problem.Degrees {
		wrong(min(degree.Data, degree.Tensor) < 1, "degrees[%d]: %d replicas of %d devices", i, degree.Data, degree.Tensor)
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
	var after After
	sum, largest, at := 0., 0., problem.Units
	for i := len(stages) - 1; i >= 0; i-- {
		stage := &stages[i]
		if stage.To != at || stage.From >= at || stage.From < 0 {
			return 0, fmt.Errorf("stage %d takes units [%d, %d) before unit %d", i, stage.From, stage.To, at)
		}
		if stage.Time = problem.Time(stage.From, stage.To, stage.Degree, after); !fine(stage.Time) {
			return 0, fmt.Errorf("stage %d, units [%d, %d): a time of %v", i, stage.From, stage.To, stage.Time)
		}
		after = after.with(problem.Degrees[stage.Degree])
		sum, largest, at = sum+stage.Time, max(largest, stage.Time), stage.From
	}
	switch {
	case at != 0:
		return 0, fmt.Errorf("units [0, %d) are in no stage", at)
	case after.Devices > problem.Devices || problem.Exactly && after.Devices < problem.Devices:
		return 0, fmt.Errorf("%d devices of %d", after.Devices, problem.Devices)
	case problem.MostStages > 0 && len(stages) > problem.MostStages:
		return 0, fmt.Errorf("%d stages of at most %d", len(stages), problem.MostStages)
	}
	return problem.value(largest, sum), nil
}

func (problem *Problem) value(largest, sum float64) float64 {
	return problem.Steady*largest + problem.Fill*sum
}

// fine: finite and not negative.
func fine(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }
