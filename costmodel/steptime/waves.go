package steptime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// StageSeconds are the times of a pipeline's stages in seconds, one stage a
// rank: of a micro-batch forward and backward, the host's to issue them, and of
// the messages to the next stage and from it back.
type StageSeconds struct{ Forward, Backward, Issue, IssueBack, To, From []float64 }

// Ends is when each rank ends its part of a step by GPipe or 1F1B: an action
// starts when its rank is free and its input is there, and ends no sooner than
// its kernels are issued.
//
// It goes by waves. In wave t every stage s runs the forward of micro-batch t
// and then, under 1F1B with p stages, the backward of t − (p−1−s): the order of
// its actions ([Schedule.Order]), with what these wait for in this wave or in
// the one before. All that one wave leaves to the next are the clocks of the
// ranks and of their hosts, and the waves in which all stages run both are
// alike ([again]): any number of micro-batches takes the same memory.
func (s *StageSeconds) Ends(kind costmodel.ScheduleKind, train bool, microBatches int64) []float64 {
	p := len(s.Forward)
	w := waves{StageSeconds: s, stages: p, before: make([]float64, p)}
	for _, times := range [][]float64{s.Forward, s.Backward, s.Issue, s.IssueBack, s.To, s.From} {
		if slices.ContainsFunc(times, func(t float64) bool { return math.IsInf(t, 1) }) {
			return slices.Repeat([]float64{math.Inf(1)}, p) // a message without a link
		}
	}
	clocks := make([]float64, 2*p)
	switch m, last := microBatches, int64(p-1); {
	case !train || kind != costmodel.OneFOneB:
		again(clocks, m, int64(p), w.forwards)
		if train {
			again(clocks, m, int64(p), w.backwards)
		}
	default:
		for t := range min(last, m+last) {
			w.wave(clocks, t, m)
		}
		again(clocks, max(0, m-last), 2*int64(p), func(clocks []float64) { w.wave(clocks, last, m) })
		for t := max(last, m); t < m+last; t++ {
			w.wave(clocks, t, m)
		}
	}
	return clocks[:p]
}

// waves is one play. Its clocks are those of the ranks, then of their hosts.
type waves struct {
	*StageSeconds
	stages int
	before []float64 // the ranks' clocks of the wave before
}

func (w *waves) forward(clocks []float64, s int) {
	host, ready := &clocks[w.stages+s], clocks[s]
	if s > 0 {
		ready = max(ready, clocks[s-1]+w.To[s-1])
	}
	*host += w.Issue[s]
	clocks[s] = max(ready+w.Forward[s], *host)
}

// backward runs a backward whose gradient leaves the next stage at a time.
func (w *waves) backward(clocks []float64, s int, next []float64) {
	host, ready := &clocks[w.stages+s], clocks[s]
	if s+1 < w.stages {
		ready = max(ready, next[s+1]+w.From[s])
	}
	*host += w.IssueBack[s]
	clocks[s] = max(ready+w.Backward[s], *host)
}

func (w *waves) forwards(clocks []float64) {
	for s := range w.stages {
		w.forward(clocks, s)
	}
}

func (w *waves) backwards(clocks []float64) {
	for s := w.stages - 1; s >= 0; s-- {
		w.backward(clocks, s, clocks)
	}
}

// wave is one of 1F1B's, of so many micro-batches.
func (w *waves) wave(clocks []float64, t, microBatches int64) {
	copy(w.before, clocks)
	for s := 0; s < w.stages && t < microBatches; s++ {
		w.forward(clocks, s)
	}
	for s := range w.stages {
		if i := t - int64(w.stages-1-s); 0 <= i && i < microBatches {
			w.backward(clocks, s, w.before)
		}
	}
}
