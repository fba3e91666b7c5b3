package stagetime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// pipeBound has lower bounds on the rest of a step after the first stages are cut, for pipelines
// with one stage per device. Let t = f + b be the seconds of a stage's micro-batch, and r the time
// from its end through all later stages and back. The stage works, or waits for its results, for
//
//	m·t + r                                   forward only, and GPipe
//	m·t + max(0, r−(w−1)f) + max(0, r−(w−1)b) 1F1B, w = its forwards in flight
//
// GPipe's first backward comes after the last forward's return. In 1F1B only w−1 other
// micro-batches fill the waits for the first and the last backward (Narayanan et al., SC 2021,
// §2.2, for stages that differ). The forward of micro-batch i+w waits for the backward of i, so the
// time is also at least ⌊(m−1)/w⌋ round trips. Before the stage starts, its first micro-batch
// passes all earlier stages, and its last gradient passes them after it.
type pipeBound struct {
	stages, items, batches int
	train                  bool
	kind                   costmodel.ScheduleKind
	// around[stage][a] is the least time through the stages from stage on with the items from a on,
	// and back. Field token is the least time of a token there. Fields whole and ends bound the end
	// of the first stage's device after the first micro-batch arrives, and the last update.
	around, token, whole, ends [][]float64
	// host is the least of the longest time in which a stage's host issues all its kernels, from
	// the start of the step.
	host [][]float64
}

// cutter has the costs of stretches as stages. fits says which stretches fit on a stage. to and
// from are the seconds of the messages at a cut.
type cutter struct {
	*pipeCosts
	fits     [][]bool    // by stage and a·(items+1)+b
	to, from [][]float64 // by stage and item: the message at a cut after the stage
}

func (cut *cutter) ok(stage, a, b, items int) bool { return cut.fits[stage][a*(items+1)+b] }

// width returns the time of a stage between its first forward and its last backward, given the
// round trip after it.
func (bound *pipeBound) width(stage int, f, b, r float64) float64 {
	m := float64(bound.batches)
	if bound.kind.Split() { // W may fill every wait
		return m * (f + b)
	}
	if !bound.train || bound.kind != costmodel.OneFOneB { // its own work and one round trip, for any schedule
		return m*(f+b) + r
	}
	flying := min(bound.batches, bound.stages-stage)
	w := float64(flying)
	first, last := max(0, r-(w-1)*f), max(0, r-(w-1)*b)
	wait := max(first, last)
	if bound.batches > flying {
		wait = first + last
	}
	rounds := (bound.batches - 1) / flying
	rest := float64((bound.batches-1)%flying + 1)
	return max(m*(f+b)+wait, rest*f+float64(rounds)*(f+b+r)+r+b)
}

// newPipeBound returns nil if the watch's context ends first.
func newPipeBound(watch *stretchWatch, schedule costmodel.Schedule, train bool, cut *cutter, items int) *pipeBound {
	bound := &pipeBound{stages: int(schedule.Stages), items: items, batches: int(schedule.MicroBatches), train: train, kind: schedule.Kind}
	for _, rows := range []*[][]float64{&bound.around, &bound.token, &bound.whole, &bound.ends, &bound.host} {
		*rows = make([][]float64, bound.stages+1)
		for stage := range *rows {
			(*rows)[stage] = make([]float64, items+1)
			for a := range (*rows)[stage] {
				(*rows)[stage][a] = math.Inf(1)
			}
		}
		(*rows)[bound.stages][items] = 0
	}
	for stage := bound.stages - 1; stage >= 0; stage-- {
		for a := stage; a < items; a++ {
			if watch.over(items - a) {
				return nil
			}
			bound.fill(cut, stage, a)
		}
	}
	return bound
}

func (bound *pipeBound) fill(cut *cutter, stage, a int) {
	for b := a + 1; b <= bound.items-(bound.stages-1-stage); b++ {
		if stage == bound.stages-1 && b < bound.items || !cut.ok(stage, a, b, bound.items) || math.IsInf(bound.around[stage+1][b], 1) {
			continue
		}
		view := bound.stage(cut, stage, a, b)
		bound.around[stage][a] = min(bound.around[stage][a], view.through+bound.around[stage+1][b])
		bound.host[stage][a] = min(bound.host[stage][a], max(view.host, bound.host[stage+1][b]))
		bound.token[stage][a] = min(bound.token[stage][a], view.token+bound.token[stage+1][b])
		bound.whole[stage][a] = min(bound.whole[stage][a], max(view.width, view.until+bound.whole[stage+1][b]))
		bound.ends[stage][a] = min(bound.ends[stage][a], max(view.width+view.update, view.ahead+bound.ends[stage+1][b]))
	}
}

// stageView has the figures of one stage with given items.
type stageView struct {
	through float64 // a micro-batch through it, to the next stage, and back
	// until is the time before the next device's work, and after that to the end of this device: that
	// of through, or if the next device may end with W that of ahead.
	until  float64
	ahead  float64 // a micro-batch forward only
	width  float64
	update float64
	token  float64
	host   float64 // with the update after it
}

func (bound *pipeBound) stage(cut *cutter, stage, a, b int) stageView {
	f, back := cut.forward[stage][b]-cut.forward[stage][a], cut.backward[stage][b]-cut.backward[stage][a]
	to, from := cut.to[stage][b], cut.from[stage][b]
	if !bound.train {
		back, from = 0, 0
	}
	r := 0.
	if stage+1 < bound.stages {
		r = to + from + bound.around[stage+1][b]
	}
	around := f + back + to + from
	until := around
	if bound.train && bound.kind.Split() { // no other stage waits for W
		around -= cut.learn[stage][b] - cut.learn[stage][a]
		until = f + to
	}
	return stageView{
		through: around, until: until, ahead: f + to, width: bound.width(stage, f, back, r),
		update: cut.update[stage][b] - cut.update[stage][a], host: cut.issued(stage, a, b, bound.batches) + cut.update[stage][b] - cut.update[stage][a], token: cut.tokens * (cut.token[stage][b] - cut.token[stage][a]),
	}
}

// issued returns the time in which a stage's host issues its kernels of a step.
func (costs *pipeCosts) issued(stage, a, b, batches int) float64 {
	return float64(batches) * (costs.issue[stage][b] - costs.issue[stage][a] + costs.issueBack[stage][b] - costs.issueBack[stage][a])
}
