package scheduletime

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
)

// sums are the numbers of the items before each, and the length of the passes that is tried.
type sums struct {
	*Numbers
	length                                float64
	head, back, work, saved, made, static []float64
}

func (numbers *Numbers) sums() *sums {
	return &sums{
		Numbers: numbers, head: before(numbers.Forward, 1), back: before(numbers.Input, 1), work: before(numbers.Work, float64(numbers.Batches)),
		saved: before(numbers.Saved, 1), made: before(numbers.Made, 1), static: before(numbers.Static, 1),
	}
}

func before(list []float64, times float64) []float64 {
	out := make([]float64, len(list)+1)
	for i, one := range list {
		out[i+1] = out[i] + times*one
	}
	return out
}

// over reports that a GPU's runs have more work than its time, so that longer ones have too.
func (sums *sums) over(runs [2]costmodel.Interval) bool {
	return sums.head[runs[0].First]+sums.of(sums.work, runs) > sums.length
}

// of is a sum over a GPU's runs.
func (sums *sums) of(list []float64, runs [2]costmodel.Interval) float64 {
	return list[runs[0].End] - list[runs[0].First] + list[runs[1].End] - list[runs[1].First]
}

// feasible reports that a GPU has time and memory for its runs; the second may be empty.
//   - The GPU begins after the forwards of the items before its first, and then has all its work. If
//     backwards are whole, the gradients of the items before follow.
//   - Before the micro-batch that comes first reaches its second run, it has forwards of its first
//     run only. Before the first gradient comes back, it has as many forwards as fit in its memory.
//   - A micro-batch is in a run while it passes all later items and comes back. So the run's rings have
//     at least as many sets as such times fill the time that there is. Where this is too much,
//     blocks are recomputed, and this adds work.
func (sums *sums) feasible(gpu int, runs [2]costmodel.Interval) bool {
	batches, count := float64(sums.Batches), len(sums.Work)
	start, work := sums.head[runs[0].First], sums.of(sums.work, runs)
	if start+work > sums.length {
		return false
	}
	last := runs[0] // whose gradients come first
	if runs[1].First < runs[1].End {
		last = runs[1]
	}
	free := sums.Free[gpu] - sums.of(sums.static, runs) - sums.largest(runs)
	need, blocks := -free, [2]float64{}
	depths, forwards := [2]float64{}, 0.
	for i, run := range runs {
		if run.First == run.End {
			continue
		}
		life := sums.head[count] - sums.head[run.First] + sums.back[count] - sums.back[run.First]
		window := sums.length - sums.head[run.First] - sums.back[run.First]
		if window < life*(1-1e-12) {
			return false
		}
		depths[i] = max(1, math.Ceil(batches*life/window-1e-9))
		need += depths[i] * (sums.saved[run.End] - sums.saved[run.First])
		if sums.Freed > 0 {
			blocks[i] = (sums.saved[run.End] - sums.saved[run.First] - sums.made[run.End] + sums.made[run.First]) / sums.Freed
		}
		if bytes := sums.made[run.End] - sums.made[run.First]; bytes > 0 {
			forwards = max(forwards, (sums.head[run.End]-sums.head[run.First])/bytes)
		} else {
			forwards = math.Inf(1)
		}
	}
	again, enough := sums.recomputed(need, depths, blocks)
	if !enough {
		return false
	}
	if again > 0 {
		work += again * batches * sums.Extra
	}
	tail := 0.
	if sums.Joint {
		tail = sums.back[runs[0].First]
	}
	second := sums.head[last.First]
	first := sums.head[count] + sums.back[count] - sums.back[last.End]
	before := min(second-start, batches*(sums.head[runs[0].End]-sums.head[runs[0].First]))
	early := min(first-start, batches*sums.of(sums.head, runs))
	if most := max(0, free) * forwards; most < early { // not a number, 0 bytes for runs that keep none: no limit
		early = most
	}
	if last == runs[0] {
		before = 0
	}
	return max(start+work, second+work-before, first+work-early)+tail <= sums.length*(1+1e-12)
}

// largest returns the scratch of a GPU's runs.
func (sums *sums) largest(runs [2]costmodel.Interval) (scratch float64) {
	for _, run := range runs {
		for item := run.First; item < run.End; item++ {
			scratch = max(scratch, sums.Scratch[item])
		}
	}
	return scratch
}

// recomputed returns how many blocks at least free the bytes that are needed, if each run has rings of
// these depths and so many blocks. The deeper run's come first. It is false if all are not enough.
func (sums *sums) recomputed(need float64, depths, blocks [2]float64) (count float64, enough bool) {
	if need <= 0 {
		return 0, true
	}
	if need > sums.Freed*(depths[0]*blocks[0]+depths[1]*blocks[1])*(1+1e-9) {
		return 0, false
	}
	deep, other := 0, 1
	if depths[1] > depths[0] {
		deep, other = 1, 0
	}
	count = min(blocks[deep], math.Ceil(need/(sums.Freed*depths[deep])-1e-9))
	if rest := need - count*sums.Freed*depths[deep]; rest > 1e-9*need {
		count += min(blocks[other], math.Ceil(rest/(sums.Freed*max(1, depths[other]))-1e-9))
	}
	return math.Floor(count + 1e-9), true
}
