package instance

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Tolerance is the rounding of a share, and of a step.
const Tolerance = 1e-9

// MaxTimed bounds the tables of a search for the shortest step: items × devices,
// of some 100 bytes.
const MaxTimed = 1 << 23

// StepUneven is [Answer.Uneven] of a step.
const StepUneven = "the step is proved shortest; that no map with this step has a smaller largest share is not"

// Answer is a map with what a method says of it: no [planner.Solution] yet, as
// only package planner certifies one.
type Answer struct {
	// Map is nil where every device runs the whole model, and where no map was
	// found.
	Map devicemap.Map
	// Costs is the table with those of the stages, where the method chose the
	// form of each; nil: that of the instance.
	Costs *costmodel.Table
	// Claim is the value by the method's own sums (NaN where it made none), and
	// what no map within the caps is below.
	certificate.Claim
	// Proved: all was looked at, or the value meets the bound, so that nothing
	// within the caps is better. EvenProved: nor has any map with that value a
	// smaller sum of squared shares, or with that step a smaller largest share;
	// Uneven is what to say where the value is proved and that is not.
	Proved, EvenProved bool
	Uneven             string
	// Tried is how many probes, maps or nodes were looked at.
	Tried int
	// Notes are for the user. Found says how the map was found, if it has more
	// to say than the method's Why. Bounds are the arguments for the lower bound,
	// if there are several.
	Notes  []string
	Found  string
	Bounds []BoundValue
	// Left is what left the devices; nil where nothing did.
	Left *Left
}

// NoStep is the answer of a search for the shortest step before it has a map.
func NoStep(notes []string, bound string) *Answer {
	return &Answer{Notes: notes, Claim: certificate.Claim{Bound: bound, Rounding: certificate.Sums}, Uneven: StepUneven}
}

// BoundValue is one argument for a lower bound of the value, and what it
// proves.
type BoundValue struct {
	Name  string
	Value float64
	// What says which unit or moment it rests on.
	What string
}

// Left is what left the devices: the units whose place in the map is a tier.
type Left struct {
	// Bytes is what is claimed of the bytes that travel in a forward.
	Bytes certificate.Claim
	// Average is a largest share that no map is below, whatever leaves.
	Average float64
}

// Limits end a search; the zero value has none but the context.
type Limits struct {
	// Probes ends the search after so many probes of a target; 0: no limit.
	Probes int
	// Progress, if not nil, is called with the state of the search.
	Progress func(chain.Progress)
	// ValueOnly asks for the value alone: the answer is then any map of that
	// value, not the most balanced one.
	ValueOnly bool
	// Below is a share from which on an answer is of no use; 0: none is.
	Below float64
	// Effort is the time asked for, from which a search may work out a number of
	// steps that ends it whatever the clock; 0: ten seconds.
	Effort time.Duration
}

// Method is one way to find maps and to prove what is found.
type Method interface {
	// Serves reports that the method answers for such instances.
	Serves(in *Instance) bool
	// Why says how maps are found, and why so.
	Why(in *Instance) string
	// Solve is the best map that the method can prove or find before the
	// context ends. Where the objective is the step, its map keeps the caps; an
	// error of [ErrNone] comes with an answer that says what is proved of there
	// being none. Start, if not nil, is an answer for fewer maps to go on from.
	Solve(ctx context.Context, in *Instance, limits Limits, start *Answer) (*Answer, error)
}

// Sizer is a method that can say what is too large where nothing fits.
type Sizer interface {
	// TooLarge names a unit that does not fit even on an empty device, and the
	// least that it needs on one (0: not known); none if all fit.
	TooLarge(ctx context.Context, in *Instance) (unit string, needs int64)
}

// Settle closes an answer whose devices kept their order: it is proved where
// its step meets the bound of any order, as the method finds it on the relaxed
// instance.
func (answer *Answer) Settle(ctx context.Context, in *Instance, method Method) {
	if lower := anyOrder(ctx, in, method); lower > answer.LowerBound {
		answer.LowerBound, answer.Bound = lower, "every device as large as the largest"
	}
	if step := devicemap.StepSeconds(in.Timed(), in.Topology, answer.Map); *step*(1-Tolerance) <= answer.LowerBound {
		answer.Proved, answer.Notes = true, nil
	}
	answer.EvenProved = false
}

// anyOrder is a step that no map within the caps is below, whatever the order
// of devices; 0 where none is known.
func anyOrder(ctx context.Context, in *Instance, method Method) float64 {
	relaxed := in.Relaxed()
	if relaxed == nil {
		return 0
	}
	answer, err := method.Solve(ctx, relaxed, Limits{}, nil)
	switch {
	case errors.Is(err, ErrNone) && answer.Proved:
		return math.Inf(1)
	case err != nil:
		return 0
	case answer.Proved:
		return *devicemap.StepSeconds(relaxed.Timed(), relaxed.Topology, answer.Map) * (1 - 1e-12)
	}
	return answer.LowerBound
}

// Fullest is the first device with the largest share.
func Fullest(devices []devicemap.Prediction) (device int, share float64) {
	for at := range devices {
		if devices[at].Share > share {
			device, share = at, devices[at].Share
		}
	}
	return device, share
}

// Worst is the verdict of all devices together.
func Worst(devices []devicemap.Prediction) devicemap.Verdict {
	verdict := devicemap.Verdict("fits")
	for at := range devices {
		switch devices[at].Verdict {
		case "no":
			return "no"
		case "tight":
			verdict = "tight"
		}
	}
	return verdict
}

// HalfOf ends after half of the time that is left.
func HalfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/2)
	}
	return context.WithCancel(ctx)
}
