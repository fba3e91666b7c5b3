package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestClosed: the closed forms equal the folds that they replace, and maxima computed by hand.
func TestClosed(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	size := func() int64 { return rng.Int64N(2) * rng.Int64N(1000) }
	for range 1000 * *samples {
		summary := Summary{
			Static: size(), Saved: size(), Grads: size(), LastBackward: size(), StepTransient: size(),
			UntilBodyEnd: size(), HeadPeak: size(), Products: rng.IntN(2) == 0,
		}
		summary.CacheGrowth = size() - min(summary.Saved, size())
		summary.Forward, summary.Backward = summary.Saved+summary.UntilBodyEnd+size(), max(summary.Saved, summary.Grads)+size()
		resident := Resident{
			Workspace: size(), Output: size(), OutputDropped: rng.IntN(2) == 0,
			Buckets: size(), LastGradients: rng.IntN(2) == 0,
		}
		fold := outcomeOf(func(emit func(stepEvent)) { deviceMap(costmodel.Train, &summary, &resident, emit) })
		if got := summary.Peak(resident); got != fold.Peak {
			t.Fatalf("%+v, %+v: %d, the fold %d", summary, resident, got, fold.Peak)
		}
		if summary.CacheGrowth > 0 {
			continue // in inference alone
		}
		summary.CacheGrowth = 0
		if got, want := summary.Peak(resident), onPaper(&summary, &resident); got != want {
			t.Fatalf("%+v, %+v: %d, on paper %d", summary, resident, got, want)
		}
	}
}

// onPaper is the peak of a step on a device, by its phases.
func onPaper(summary *Summary, resident *Resident) int64 {
	retained := resident.Output // in backward and the step
	if resident.OutputDropped {
		retained = 0
	}
	var last int64
	if resident.LastGradients {
		last = summary.Grads
	}
	most := max(
		last+summary.Forward, last+summary.Saved+max(summary.HeadPeak, resident.Output),
		summary.Backward+retained, summary.Grads+max(summary.LastBackward, summary.StepTransient)+retained,
	)
	if summary.Products {
		most += resident.Workspace
	}
	return summary.Static + resident.Buckets + most
}

// TestStageOnPaper checks the form of a rank with one stage against the one that follows from the
// schedules. With w micro-batches in flight, K kept of each, R its cosines and sines, o its output,
// G the gradients, L the logits of one (last stage):
//
//	first forwards   (w−1)(K+L) + R + forward
//	later forwards   (w−1)K + (m−1)L + G + sent + R + forward
//	first backward   (w−1)K + wL + R + o + backward
//	later backwards  (w−1)K + mL + G + sent + R + o + backward again
func TestStageOnPaper(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 700 * *samples {
		count := 1 + rng.IntN(9)
		chain := newStageChain(randomStages(rng, count, costmodel.Train))
		schedule := costmodel.Schedule{Kind: costmodel.GPipe, Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(9)}
		if rng.IntN(2) == 0 {
			schedule.Kind = costmodel.OneFOneB
		}
		at := costmodel.Interval{First: rng.IntN(count)}
		at.End = at.First + 1 + rng.IntN(count-at.First)
		place := Rank{schedule, rng.Int64N(schedule.Stages), []costmodel.Interval{at}}
		const workspace = 77
		if got, want := chain.Peak(place, workspace), chain.stageOnPaper(place, workspace); got != want {
			t.Fatalf("%+v: %d, on paper %d", place, got, want)
		}
	}
}

func (chain *stageChain) stageOnPaper(place Rank, workspace int64) int64 {
	var part span
	chain.span(&part, place.Chunks[0])
	microBatches := place.Schedule.MicroBatches
	w := microBatches
	if place.Schedule.Kind == costmodel.OneFOneB {
		w = min(w, place.Schedule.Stages-place.Index)
	}
	retained := part.first.Saved + part.rotary + part.own
	most := max(
		(w-1)*(retained+part.logits)+part.rotary+part.first.Forward,
		w*(retained+part.logits),
		(w-1)*retained+w*part.logits+part.rotary+part.own+part.first.Backward,
		part.first.Grads+2*microBatches*part.logits, // merging of outputs
		part.first.Grads+microBatches*part.logits+part.first.StepTransient,
	)
	if microBatches > 1 {
		var sent int64
		if place.Schedule.Kind == costmodel.OneFOneB {
			sent = part.in
		}
		flying := w - 1 // at the second backward
		if microBatches > w {
			flying = w
			most = max(most, (w-1)*retained+(microBatches-1)*part.logits+part.first.Grads+sent+part.rotary+part.first.Forward, w*retained+microBatches*part.logits+part.first.Grads+sent)
		}
		most = max(most, (flying-1)*retained+microBatches*part.logits+part.first.Grads+sent+part.rotary+part.own+part.again.Backward)
	}
	most += part.first.Static + microBatches*(part.in+part.out)
	if part.first.Products {
		most += workspace
	}
	if !part.ends {
		most += part.padding
	}
	return most
}
