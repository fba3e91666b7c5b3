package steptime

import "github.com/devmap-dev/devmap/costmodel"

// playWaves plays GPipe or 1F1B by waves. In wave t every stage s runs the
// forward of micro-batch t and then, under 1F1B with p stages, the backward of
// t − (p−1−s): the order of its actions ([costmodel.Schedule.Order]), with what
// these wait for in this wave or in the one before. All that one wave leaves to
// the next are the clocks of the ranks, and the waves in which all stages run
// both are alike ([repeat]).
func playWaves(clocks []Clock, schedule costmodel.Schedule, train bool, stages []Stage) {
	w := waves{stages: stages, batches: schedule.MicroBatches, before: make([]Clock, len(stages))}
	ranks, last := int64(len(stages)), int64(len(stages)-1)
	switch {
	case !train || schedule.Kind != costmodel.OneFOneB:
		repeat(clocks, w.batches, ranks, w.forwards)
		if train {
			repeat(clocks, w.batches, ranks, w.backwards)
		}
	default:
		for t := range min(last, w.batches+last) {
			w.wave(clocks, t)
		}
		repeat(clocks, max(0, w.batches-last), 2*ranks, func(clocks []Clock) { w.wave(clocks, last) })
		for t := max(last, w.batches); t < w.batches+last; t++ {
			w.wave(clocks, t)
		}
	}
}

// waves is one play, of stage s on rank s.
type waves struct {
	stages  []Stage
	batches int64
	before  []Clock // of the wave before
}

func (w *waves) forward(clocks []Clock, s int) {
	if s > 0 {
		clocks[s].Await(clocks[s-1].Device + w.stages[s-1].To)
	}
	clocks[s].Run(w.stages[s].Issue, w.stages[s].Forward)
}

// backward runs a backward whose gradient leaves the next stage's clock.
func (w *waves) backward(clocks []Clock, s int, next []Clock) {
	if s+1 < len(w.stages) {
		clocks[s].Await(next[s+1].Device + w.stages[s].From)
	}
	clocks[s].Run(w.stages[s].IssueBack, w.stages[s].Backward)
}

func (w *waves) forwards(clocks []Clock) {
	for s := range w.stages {
		w.forward(clocks, s)
	}
}

func (w *waves) backwards(clocks []Clock) {
	for s := len(w.stages) - 1; s >= 0; s-- {
		w.backward(clocks, s, clocks)
	}
}

// wave is the t-th of 1F1B's.
func (w *waves) wave(clocks []Clock, t int64) {
	copy(w.before, clocks)
	for s := 0; s < len(w.stages) && t < w.batches; s++ {
		w.forward(clocks, s)
	}
	for s := range w.stages {
		if i := t - int64(len(w.stages)-1-s); 0 <= i && i < w.batches {
			w.backward(clocks, s, w.before)
		}
	}
}
