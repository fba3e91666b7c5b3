package stagememory

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// solveLooped solves an interleaved pipeline. It tries all cuts if there are few. Otherwise it
// searches for better cuts ([Looped.search]), then tries to prove that none are better
// ([Looped.prove]), within the context and the effort.
func solveLooped(ctx context.Context, peaks *instance.StagePeaks, limits instance.Limits) (*instance.Answer, error) {
	in := peaks.In
	if len(in.Pins) > 0 {
		return nil, RefusePins(in)
	}
	looped := NewLooped(peaks)
	looped.Quick = limits.Quick
	vee := looped.schedule.Kind.Vee()
	if limits.Below > 0 && !vee {
		if bound, _ := looped.counts(ctx, limits.Below); bound >= limits.Below {
			return nil, instance.ErrNone
		}
	}
	best, exact, stopped := looped.search(ctx)
	proved := exact || best.most <= looped.floor
	if !proved && !stopped && !vee && !(limits.AnyFit && best.most <= 1) {
		ends := proofEnds(limits.Effort)
		if looped.Quick {
			ends = quickEnds
		}
		best, proved = looped.prove(ctx, best, ends)
		stopped = ctx.Err() != nil
	}
	out := &instance.Answer{
		Map: looped.Map(looped.Cuts, nil), Tried: looped.tried, EvenProved: exact,
		Claim: certificate.Claim{Value: best.most, LowerBound: weightBound(peaks), Bound: "weights", Rounding: certificate.Exact, Stopped: stopped},
	}
	if looped.floor > out.LowerBound {
		out.LowerBound, out.Bound = min(looped.floor, best.most), looped.bound
	}
	if proved { // all cuts were tried, or the rest is worse
		out.LowerBound, out.Bound = best.most, "search"
	}
	return out, nil
}

// RefusePins returns the error for pins with interleaved runs.
func RefusePins(in *instance.Instance) error {
	return &instance.ConstraintError{Field: "pin", Pattern: in.Pins[0].Pattern, Msg: "pins are not built for interleaved schedules: a GPU has several runs, and which of them a pin means is not searched; without pins, or with another schedule, it is planned"}
}

// Level sets the cuts with the smallest largest share that the search finds, or a quick one;
// false if it finds none.
func (looped *Looped) Level(ctx context.Context) bool {
	if looped.Quick && !looped.schedule.Kind.Vee() {
		_, set := looped.counts(ctx, looped.score().most)
		return set
	}
	best, _, _ := looped.search(ctx)
	return !math.IsInf(best.most, 1)
}

// score computes the shares of the cuts.
func (looped *Looped) score() score {
	for device := range looped.share {
		looped.share[device] = looped.Share(device, looped.Cuts)
	}
	return looped.sum()
}

// sum returns the score of the devices' shares.
func (looped *Looped) sum() (out score) {
	looped.tried++
	for _, share := range looped.share {
		out.most = max(out.most, share)
		out.squares += share * share
	}
	return out
}
