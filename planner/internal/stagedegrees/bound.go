package stagedegrees

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// bound has lower bounds of the rest of a step, for the stages from an item on with some GPUs and a
// fixed number of stages.
type bound struct {
	around float64 // one micro-batch through them and back
	ahead  float64 // one micro-batch forward only
	whole  float64 // until the first stage has its last gradient
	ends   float64 // until the last update
	host   float64 // the longest time in which a host issues kernels
}

var nothing = bound{around: math.Inf(1), ahead: math.Inf(1), whole: math.Inf(1), ends: math.Inf(1), host: math.Inf(1)}

// below returns a lower bound on the step of any stages within the caps. It starts from the last
// stage, for each number of later stages. Each figure is the least over all forms of the stage, so
// the largest figure is a bound too. A stage takes f forward and b backward seconds. If k−1 stages
// follow, it has w = min(m, k) micro-batches in flight and a round trip r through these stages. It
// works or waits for
//
//	m·(f+b) + r                                   GPipe
//	m·(f+b) + max(0, r−(w−1)f) + max(0, r−(w−1)b) 1F1B
//
// (see package stagetime). It costs stages × GPUs × items² × forms.
func (problem *problem) below(ctx context.Context) float64 {
	items, gpus := problem.items.Count(), len(problem.in.Topology.Devices)
	behind := make([][]bound, items+1) // by item and GPUs left, with one stage less
	for a := range behind {
		behind[a] = make([]bound, gpus+1)
		for left := range behind[a] {
			behind[a][left] = nothing
		}
	}
	behind[items][0] = bound{}
	least := math.Inf(1)
	for stages := 1; stages <= problem.most; stages++ {
		next := make([][]bound, items+1)
		for a := range next {
			next[a] = make([]bound, gpus+1)
			for left := range next[a] {
				next[a][left] = nothing
			}
		}
		for a := range items {
			if ctx.Err() != nil {
				return problem.average()
			}
			for b := a + 1; b <= items; b++ {
				problem.stageBound(next[a], behind[b], a, b, stages)
			}
		}
		all := next[0][gpus]
		least = min(least, max(all.whole, all.ends, all.host))
		behind = next
	}
	return max(least, problem.average())
}

// stageBound lowers the bounds from item a on by those of a stage [a, b) of any form before the
// later stages.
func (problem *problem) stageBound(from, behind []bound, a, b, stages int) {
	for at, one := range problem.forms {
		size := one.gpus
		if size >= len(from) || !problem.fits(at, a, b, stages-1) {
			continue
		}
		update := one.update[b] - one.update[a]
		batches := float64(max(1, problem.in.Costs.Workload.MicroBatches))
		for left := size; left < len(from); left++ {
			rest := &behind[left-size]
			if math.IsInf(rest.around, 1) {
				continue
			}
			forward, backward := one.forward[b]-one.forward[a], one.backward[b]-one.backward[a]
			width := problem.width(stages, forward, backward, rest.around)
			out := &from[left]
			out.around = min(out.around, forward+backward+rest.around)
			out.ahead = min(out.ahead, forward+rest.ahead)
			out.whole = min(out.whole, max(width, forward+backward+rest.whole)+update*first(a))
			out.ends = min(out.ends, max(width+update, forward+rest.ends))
			out.host = min(out.host, max(batches*(one.issue[b]-one.issue[a])+update, rest.host))
		}
	}
}

// first counts the first stage's update, which comes after its whole step.
func first(a int) float64 {
	if a == 0 {
		return 1
	}
	return 0
}

// width returns the time of a stage between its first forward and its last backward, given the
// round trip after it.
func (problem *problem) width(stages int, forward, backward, behind float64) float64 {
	workload := &problem.in.Costs.Workload
	batches := float64(max(1, workload.MicroBatches))
	all := batches * (forward + backward)
	if workload.Schedule == costmodel.GPipe {
		return all + behind
	}
	flying := min(batches, float64(stages))
	up, back := max(0, behind-(flying-1)*forward), max(0, behind-(flying-1)*backward)
	if batches > flying {
		return all + up + back
	}
	return all + max(up, back)
}

// average returns the work of all items divided by all GPUs, each item in the form with the least
// work per GPU.
func (problem *problem) average() float64 {
	var sum float64
	for item := range problem.items.Count() {
		least := math.Inf(1)
		for _, one := range problem.forms {
			least = min(least, one.work(item, item+1)*float64(one.gpus))
		}
		sum += least
	}
	return sum * float64(max(1, problem.in.Costs.Workload.MicroBatches)) / float64(len(problem.in.Topology.Devices))
}
