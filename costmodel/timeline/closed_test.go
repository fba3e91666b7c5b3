package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/order"
)

// TestClosed: the closed forms are the folds that they stand for, and the
// maxima that one finds on paper.
func TestClosed(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	size := func() int64 { return rng.Int64N(2) * rng.Int64N(1000) }
	for range 3000 {
		s := Summary{
			Static: size(), Saved: size(), Grads: size(), LastBackward: size(), StepTransient: size(),
			UntilBodyEnd: size(), HeadPeak: size(), Products: rng.IntN(2) == 0,
		}
		s.CacheGrowth = size() - min(s.Saved, size())
		s.Forward, s.Backward = s.Saved+s.UntilBodyEnd+size(), max(s.Saved, s.Grads)+size()
		resident := Resident{
			Workspace: size(), Output: size(), OutputDropped: rng.IntN(2) == 0,
			Buckets: size(), LastGradients: rng.IntN(2) == 0,
		}
		fold := FoldOf(func(emit func(Event)) { deviceMap(costmodel.Train, &s, &resident, emit) })
		if got := s.Peak(resident); got != fold.Peak {
			t.Fatalf("%+v, %+v: %d, the fold %d", s, resident, got, fold.Peak)
		}
		if s.CacheGrowth > 0 {
			continue // in inference alone
		}
		s.CacheGrowth = 0
		if got, want := s.Peak(resident), onPaper(&s, &resident); got != want {
			t.Fatalf("%+v, %+v: %d, on paper %d", s, resident, got, want)
		}
	}
}

// onPaper is the peak of a step on a device, by its phases.
func onPaper(s *Summary, resident *Resident) int64 {
	kept := resident.Output // in backward and the step
	if resident.OutputDropped {
		kept = 0
	}
	var last int64
	if resident.LastGradients {
		last = s.Grads
	}
	most := max(
		last+s.Forward, last+s.Saved+max(s.HeadPeak, resident.Output),
		s.Backward+kept, s.Grads+max(s.LastBackward, s.StepTransient)+kept,
	)
	if s.Products {
		most += resident.Workspace
	}
	return s.Static + resident.Buckets + most
}

// TestStageOnPaper holds the form of a rank with one stage to the one that
// follows from the schedules. With w micro-batches in flight, K kept of each,
// R its cosines and sines, o its output, G the gradients, L the logits of one
// (last stage):
//
//	first forwards   (w−1)(K+L) + R + forward
//	later forwards   (w−1)K + (m−1)L + G + sent + R + forward
//	first backward   (w−1)K + wL + R + o + backward
//	later backwards  (w−1)K + mL + G + sent + R + o + backward again
func TestStageOnPaper(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for range 2000 {
		n := 1 + rng.IntN(9)
		chain := NewStageChain(randomStages(rng, n, costmodel.Train))
		schedule := costmodel.Schedule{Kind: costmodel.GPipe, Stages: 1 + rng.Int64N(5), Chunks: 1, MicroBatches: 1 + rng.Int64N(9)}
		if rng.IntN(2) == 0 {
			schedule.Kind = costmodel.OneFOneB
		}
		at := costmodel.Interval{First: rng.IntN(n)}
		at.End = at.First + 1 + rng.IntN(n-at.First)
		place := Rank{schedule, rng.Int64N(schedule.Stages), []costmodel.Interval{at}}
		const workspace = 77
		if got, want := chain.Peak(place, workspace), chain.stageOnPaper(place, workspace); got != want {
			t.Fatalf("%+v: %d, on paper %d", place, got, want)
		}
	}
}

func (c *StageChain) stageOnPaper(place Rank, workspace int64) int64 {
	p := c.span(place.Chunks[0])
	m, w := place.Schedule.MicroBatches, order.InFlight(place.Schedule, place.Index)
	kept := p.first.Saved + p.rotary + p.own
	most := max(
		(w-1)*(kept+p.logits)+p.rotary+p.first.Forward,
		w*(kept+p.logits),
		(w-1)*kept+w*p.logits+p.rotary+p.own+p.first.Backward,
		p.first.Grads+2*m*p.logits, // merging of outputs
		p.first.Grads+m*p.logits+p.first.StepTransient,
	)
	if m > 1 {
		var sent int64
		if place.Schedule.Kind == costmodel.OneFOneB {
			sent = p.in
		}
		flying := w - 1 // at the second backward
		if m > w {
			flying = w
			most = max(most, (w-1)*kept+(m-1)*p.logits+p.first.Grads+sent+p.rotary+p.first.Forward, w*kept+m*p.logits+p.first.Grads+sent)
		}
		most = max(most, (flying-1)*kept+m*p.logits+p.first.Grads+sent+p.rotary+p.own+p.again.Backward)
	}
	most += p.first.Static + m*(p.in+p.out)
	if p.first.Products {
		most += workspace
	}
	if !p.ends {
		most += p.padding
	}
	return most
}
