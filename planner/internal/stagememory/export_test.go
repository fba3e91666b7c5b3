package stagememory

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// The tests of bounds call the search's parts here, so that they check each part
// and not only an answer.

// WeightBound returns the bound of an interleaved pipeline's largest share.
func WeightBound(in *instance.Instance) (float64, error) {
	items, err := in.Items()
	if err != nil {
		return 0, err
	}
	return weightBound(instance.NewStagePeaks(items)), nil
}

// BareSaved returns the first unit of each item of a pipeline, and the bytes that each item saves
// of a micro-batch at any cuts.
func BareSaved(in *instance.Instance) (start []int, saved []int64, err error) {
	items, err := in.Items()
	if err != nil {
		return nil, nil, err
	}
	for item := range items.Count() {
		saved = append(saved, bareSaved(items, item))
	}
	return items.Start, saved, nil
}

// LoopedBounds returns the two bounds on the largest share of an interleaved pipeline, and the
// share that the search finds if there are too many cuts to try all.
func LoopedBounds(ctx context.Context, in *instance.Instance) (weights, run, found float64, err error) {
	items, err := in.Items()
	if err != nil {
		return 0, 0, 0, err
	}
	s := NewLooped(instance.NewStagePeaks(items))
	best, _ := s.climb(ctx)
	return weightBound(s.StagePeaks), s.floor, best.most, nil
}

// Proof is the result of [Looped.prove] for some cuts.
type Proof struct {
	Start, Found, Least float64 // shares of the first cuts, of those found, and of the best
	Proved              bool
}

// ProofOf proves the best cuts of an interleaved pipeline, from random cuts. It also tries all
// cuts.
func ProofOf(ctx context.Context, in *instance.Instance, rng *rand.Rand) (out Proof, err error) {
	items, err := in.Items()
	if err != nil {
		return out, err
	}
	looped := NewLooped(instance.NewStagePeaks(items))
	out.Least = math.Inf(1)
	looped.Each(ctx, 1, func() { out.Least = min(out.Least, looped.score().most) })
	looped.Even()
	for range 3 {
		looped.kick(rng)
	}
	start := looped.score()
	found, proved := looped.prove(ctx, start, proofEnds(0))
	out.Start, out.Found, out.Proved = start.most, found.most, proved && looped.score().most == found.most
	return out, nil
}

// ProofEnds is [proofEnds].
var ProofEnds = proofEnds

// ProofWithin proves the even cuts, with at most so many ends of runs.
func ProofWithin(ctx context.Context, in *instance.Instance, ends int) (out Proof, err error) {
	items, err := in.Items()
	if err != nil {
		return out, err
	}
	looped := NewLooped(instance.NewStagePeaks(items))
	looped.Even()
	start := looped.score()
	found, proved := looped.prove(ctx, start, ends)
	return Proof{Start: start.most, Found: found.most, Proved: proved}, nil
}

// Counts returns the bound of [Looped.counts], and the largest share of its cuts; +Inf if it set
// none.
func Counts(ctx context.Context, in *instance.Instance) (bound, share float64, err error) {
	items, err := in.Items()
	if err != nil {
		return 0, 0, err
	}
	looped := NewLooped(instance.NewStagePeaks(items))
	bound, set := looped.counts(ctx, math.Inf(1))
	if share = math.Inf(1); set {
		share = looped.score().most
	}
	return bound, share, nil
}
