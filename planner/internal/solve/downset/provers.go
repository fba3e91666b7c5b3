package downset

import (
	"context"
	"math"
	"time"
)

// prover is one of the ways to raise the bound.
type prover struct {
	// run goes on with it until about the moment given.
	run func(ctx context.Context, end time.Time) error
	// live says that there is something left to be had of it.
	live func() bool
	// reached is what it has proved itself, which may be below what others have.
	reached func() float64
	// follows says that it goes on from what others have proved.
	follows bool
	// slices is how many its next turn has.
	slices float64
	// now is where it is, half where it was after about half of its time.
	now, half, next standing
}

// standing is what a prover had reached when it had spent so much time.
type standing struct {
	reached float64
	spent   time.Duration
}

// A slice is a part slicePart of the time that there is. A turn has firstSlices at
// first, then from one to mostSlices.
const (
	slicePart               = 0.02
	firstSlices, mostSlices = 4, 8
)

// inTurns has the provers go on one after the other until the moment given: which of
// them suits a problem is not known before. It ends sooner where none has anything left.
// One has the more of what is left, the more it will have reached by then if it goes on
// as in the latter half of its time.
func (call *contiguous) inTurns(ctx context.Context, end time.Time) error {
	if call.tree == nil { // it is made here where there is an answer, which is looked for first
		if err := call.divide(ctx, end, 0); err != nil || call.Answer.Place == nil {
			return err
		}
	}
	if call.provers == nil {
		call.provers = call.newProvers(ctx)
	}
	slice := time.Duration(slicePart * float64(time.Until(end)))
	for ran := true; ran && !call.Proven() && time.Now().Before(end); {
		ran = false
		for i := range call.provers {
			one := &call.provers[i]
			if !one.live() || call.Proven() || !time.Now().Before(end) {
				continue
			}
			ran = true
			if one.follows {
				one.from(call.Answer.LowerBound)
			}
			if err := one.turn(ctx, slice); err != nil {
				return err
			}
		}
		call.share(time.Until(end))
	}
	return ctx.Err()
}

// turn goes on for a prover's slices.
func (one *prover) turn(ctx context.Context, slice time.Duration) error {
	began := time.Now()
	err := one.run(ctx, began.Add(time.Duration(one.slices*float64(slice))))
	one.now = standing{one.reached(), one.now.spent + time.Since(began)}
	if one.now.spent >= 2*one.next.spent {
		one.half, one.next = one.next, one.now
	}
	return err
}

// from lifts where it was to a bound that others have proved: that was not its gain.
func (one *prover) from(bound float64) {
	for _, was := range []*standing{&one.half, &one.next} {
		was.reached += max(0, bound-one.now.reached)
	}
}

// will is what a prover will have reached after so much time more.
func (one *prover) will(left time.Duration) float64 {
	rate := (one.now.reached - one.half.reached) / max(1, float64(one.now.spent-one.half.spent))
	return one.now.reached + rate*float64(left)
}

// share gives the slices anew: the more of the gap a prover will have closed, the more.
func (call *contiguous) share(left time.Duration) {
	low, high := call.Answer.LowerBound, call.Answer.Value
	most := 0.0
	for i := range call.provers {
		if one := &call.provers[i]; one.live() {
			most = max(most, min(one.will(left), high)-low)
		}
	}
	for i := range call.provers {
		one := &call.provers[i]
		if one.slices = 1; most > 0 && one.live() {
			part := max(0, min(one.will(left), high)-low) / most
			one.slices += (mostSlices - 1) * part * part
		}
	}
}

// newProvers are the boundaries and, where the gap is wide, the prices. Where windows
// are wide, those of any device have nearly all of the time at first, as boundaries
// gain nothing then, and stages have none of their own.
func (call *contiguous) newProvers(ctx context.Context) []prover {
	tree := prover{follows: true, slices: firstSlices, live: func() bool { return call.tree != nil && !call.tree.Done() }}
	tree.run = func(ctx context.Context, end time.Time) error { return call.divide(ctx, end, math.MaxInt) }
	tree.reached = func() float64 { return call.tree.Bound() }
	stages := prover{slices: firstSlices, run: call.byStages, live: func() bool { return call.wideGap() && call.priced != nil }}
	stages.reached = func() float64 { return call.priced.refuted }
	sets := prover{slices: firstSlices, run: call.byPrices}
	sets.live = func() bool {
		return call.wideGap() && (call.sets == nil || !call.sets.Done(call.Answer.Value))
	}
	sets.reached = func() float64 {
		if call.sets == nil || call.sets.Proof == nil {
			return 0
		}
		return call.sets.Proof.Limit
	}
	if call.wideGap() {
		call.priced = call.newStagePrices(ctx)
	}
	if call.priced == nil {
		tree.slices, sets.slices = 1, mostSlices
	}
	return []prover{stages, sets, tree}
}

// wideGap: the boundaries alone will not do.
func (call *contiguous) wideGap() bool {
	const wide = 0.03 // as a part of the value
	return call.Answer.Place != nil && call.Answer.Value*(1-wide) > call.Answer.LowerBound
}
