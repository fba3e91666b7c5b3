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

// Tolerance is the relative rounding error allowed for a share or a step.
const Tolerance = 1e-9

// MaxTimed limits the tables of a search for the shortest step: items × devices, of about 100 bytes
// each.
const MaxTimed = 1 << 23

// StepUneven is [Answer.Uneven] if the objective is the step.
const StepUneven = "the step is proved shortest; that no map with this step has a smaller largest share is not"

// Answer is a map with a method's claims. Package planner certifies it and makes it a
// [planner.Solution].
type Answer struct {
	// Map is nil if every device runs the whole model, or if no map was found.
	Map devicemap.Map
	// Costs is the table with the stages' own tables, if the method chose the form of each stage;
	// nil: the instance's table.
	Costs *costmodel.Table
	// Claim is the value by the method's own sums (NaN if it computed none), and a lower bound of
	// every map within the caps.
	certificate.Claim
	// Proved: the search was complete or the value meets the bound, so no map within the caps is
	// better. EvenProved: in addition, no map with this value has a smaller sum of squared shares,
	// or with this step a smaller largest share. Uneven is the note for a value that is proved
	// without EvenProved.
	Proved, EvenProved bool
	Uneven             string
	// Tried is the number of probes, maps or nodes.
	Tried int
	// Notes are for the user. Found says how the map was found, if the method's Why does not say
	// enough. Bounds are the arguments for the lower bound, if there are several.
	Notes  []string
	Found  string
	Bounds []BoundValue
	// Left describes the offloaded units; nil if there are none.
	Left *Left
}

// NoStep returns the answer of a search for the shortest step before it has a map.
func NoStep(notes []string, bound string) *Answer {
	return &Answer{Notes: notes, Claim: certificate.Claim{Bound: bound, Rounding: certificate.Sums}, Uneven: StepUneven}
}

// BoundValue is one argument for a lower bound, and the value that it proves.
type BoundValue struct {
	Name  string
	Value float64
	// The unit or the moment that the bound rests on.
	What string
}

// Left describes the offloaded units: those whose device in the map is a tier.
type Left struct {
	// Bytes claims the number of bytes copied in each forward.
	Bytes certificate.Claim
	// Average is a lower bound of the largest share, for any offloaded units.
	Average float64
}

// Limits end a search; the zero value sets no limit apart from the context.
type Limits struct {
	// Probes is the most targets that the search tries; 0: no limit.
	Probes int
	// Progress, if not nil, is called with the state of the search.
	Progress func(chain.Progress)
	// ValueOnly asks for any map with the best value. It skips the search for the most balanced
	// one.
	ValueOnly bool
	AnyFit    bool // a map that fits needs no proof that none is better
	// Below is a share from which on an answer is of no use; 0: none is.
	Below float64
	// Step is the same for steps. Quick: a search by trial takes a small number of steps.
	Step  float64
	Quick bool
	// Effort is the time asked for, from which a search may work out a number of
	// steps that ends it whatever the clock; 0: ten seconds.
	Effort time.Duration
}

// Method is one algorithm that finds and proves maps.
type Method interface {
	// Serves reports that the method can solve an instance.
	Serves(in *Instance) bool
	// Why says how maps are found, and why this way.
	Why(in *Instance) string
	// Solve returns the best map that the method can prove or find before the context ends. If the
	// objective is the step, the map is within the caps. With the error [ErrNone], the answer says
	// what is proved. start, if not nil, is an answer for a smaller set of maps, from which the
	// search continues.
	Solve(ctx context.Context, in *Instance, limits Limits, start *Answer) (*Answer, error)
}

// Sizer is a method that can name what is too large if nothing fits.
type Sizer interface {
	// TooLarge names a unit that does not fit even on an empty device, and its least memory there
	// (0: unknown). The name is empty if all units fit.
	TooLarge(ctx context.Context, in *Instance) (unit string, needs int64)
}

// Settle completes an answer for devices in their order. The answer is proved if its step meets the
// bound for any order, which the method computes on the relaxed instance.
func (answer *Answer) Settle(ctx context.Context, in *Instance, method Method) {
	if lower := anyOrder(ctx, in, method); lower > answer.LowerBound {
		answer.LowerBound, answer.Bound = lower, "every device as large as the largest"
	}
	if step := devicemap.StepSeconds(in.Timed(), in.Topology, answer.Map); *step*(1-Tolerance) <= answer.LowerBound {
		answer.Proved, answer.Notes = true, nil
	}
	answer.EvenProved = false
}

// anyOrder returns a lower bound of the step of maps within the caps, for any order of devices; 0
// if none is known.
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

// Fullest returns the first device with the largest share.
func Fullest(devices []devicemap.Prediction) (device int, share float64) {
	for at := range devices {
		if devices[at].Share > share {
			device, share = at, devices[at].Share
		}
	}
	return device, share
}

// Worst returns the worst verdict of the devices.
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

// HalfOf returns a context that ends after half of the remaining time.
func HalfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/2)
	}
	return context.WithCancel(ctx)
}
