package steptime

import "github.com/devmap-dev/devmap/costmodel"

// simulateWaves simulates GPipe or 1F1B by waves. In wave t every stage s runs the forward of
// micro-batch t, then under 1F1B with p stages the backward of t − (p−1−s), as in [order.Of]. Their
// inputs come from this wave or the last. Waves share only the ranks' clocks, and waves in which
// all stages run both are equal ([repeat]).
func simulateWaves(clocks []deviceClock, schedule costmodel.Schedule, train bool, stages []Stage, record *recorder) {
	w := waves{stages: stages, batches: schedule.MicroBatches, before: make([]deviceClock, len(stages)), record: record, ran: make([][2]int64, len(stages))}
	ranks, last := int64(len(stages)), int64(len(stages)-1)
	switch {
	case !train || schedule.Kind != costmodel.OneFOneB:
		repeat(clocks, w.batches, record.cost(ranks), w.forwards)
		if train {
			repeat(clocks, w.batches, record.cost(ranks), w.backwards)
		}
	default:
		for turn := range min(last, w.batches+last) {
			w.wave(clocks, turn)
		}
		repeat(clocks, max(0, w.batches-last), record.cost(2*ranks), func(clocks []deviceClock) { w.wave(clocks, last) })
		for turn := max(last, w.batches); turn < w.batches+last; turn++ {
			w.wave(clocks, turn)
		}
	}
}

// waves is one simulation, of stage s on rank s.
type waves struct {
	stages  []Stage
	batches int64
	before  []deviceClock // of the wave before
	record  *recorder
	ran     [][2]int64 // by stage: forwards and backwards until now, if recorded
}

func (w *waves) forward(clocks []deviceClock, stage int) {
	if stage > 0 {
		w.arrives(stage-1, 0, clocks[stage-1].Device, w.stages[stage-1].To)
		clocks[stage].await(clocks[stage-1].Device + w.stages[stage-1].To)
	}
	start := clocks[stage].Device
	clocks[stage].run(w.stages[stage].Issue, w.stages[stage].Forward)
	w.runs(stage, 0, start, clocks[stage].Device)
}

// backward runs a backward; its gradient comes at the next stage's clock.
func (w *waves) backward(clocks []deviceClock, stage int, next []deviceClock) {
	if stage+1 < len(w.stages) {
		w.arrives(stage+1, 1, next[stage+1].Device, w.stages[stage].From)
		clocks[stage].await(next[stage+1].Device + w.stages[stage].From)
	}
	start := clocks[stage].Device
	clocks[stage].run(w.stages[stage].IssueBack, w.stages[stage].Backward)
	w.runs(stage, 1, start, clocks[stage].Device)
}

// runs records a pass: a forward (0) or a backward (1).
func (w *waves) runs(stage, way int, start, end float64) {
	if w.record != nil {
		w.record.add(Span{w.stages[stage].Rank, streamCompute, [2]string{doesForward, doesBackward}[way], stage, stage + 1, w.ran[stage][way], start, end})
		w.ran[stage][way]++
	}
}

// arrives records the message of a stage's last pass.
func (w *waves) arrives(from, way int, sent, takes float64) {
	if w.record != nil {
		w.record.add(Span{w.stages[from].Rank, streamSend, doesTransfer, from, from + 1, w.ran[from][way] - 1, sent, sent + takes})
	}
}

func (w *waves) forwards(clocks []deviceClock) {
	for stage := range w.stages {
		w.forward(clocks, stage)
	}
}

func (w *waves) backwards(clocks []deviceClock) {
	for stage := len(w.stages) - 1; stage >= 0; stage-- {
		w.backward(clocks, stage, clocks)
	}
}

// wave is the t-th of 1F1B's.
func (w *waves) wave(clocks []deviceClock, turn int64) {
	copy(w.before, clocks)
	for stage := 0; stage < len(w.stages) && turn < w.batches; stage++ {
		w.forward(clocks, stage)
	}
	for stage := range w.stages {
		if i := turn - int64(len(w.stages)-1-stage); 0 <= i && i < w.batches {
			w.backward(clocks, stage, w.before)
		}
	}
}
