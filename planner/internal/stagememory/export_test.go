package stagememory

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// The tests of bounds call the search's parts here, so that they check each part
// and not only an answer.

// WeightBound is the bound of an interleaved pipeline's largest share.
func WeightBound(in *instance.Instance) (float64, error) {
	items, err := in.Items()
	if err != nil {
		return 0, err
	}
	return weightBound(instance.NewStagePeaks(items)), nil
}

// BareSaved is where the items of a pipeline begin, and what each saves of a
// micro-batch wherever a cut is.
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

// LoopedBounds are the two bounds on the largest share of an interleaved
// pipeline, and what the search for cuts finds where they are too many to try
// all.
func LoopedBounds(ctx context.Context, in *instance.Instance) (weights, run, found float64, err error) {
	items, err := in.Items()
	if err != nil {
		return 0, 0, 0, err
	}
	s := NewLooped(instance.NewStagePeaks(items))
	best, _ := s.climb(ctx)
	return weightBound(s.StagePeaks), s.floor, best.most, nil
}

// Proof is what [Looped.prove] makes of cuts.
type Proof struct {
	Start, Found, Least float64 // shares: of the cuts, of what is found, of the best of all cuts
	Proved              bool
}

// ProofOf proves the best cuts of an interleaved pipeline from random ones, and
// tries all.
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

// ProofWithin proves the even cuts with so many ends of runs.
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
