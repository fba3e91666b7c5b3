package timeline

import (
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// unitChain computes the [Summary] of any stretch of units in O(1), after O(n log n) preparation.
// It keeps prefix sums of additive figures, and sparse tables for the maxima (Bender and
// Farach-Colton, LATIN 2000, §3).
type unitChain struct {
	sums              []sums // of the units before each
	forward, backward folds
	head, last        sparse
	shards            *chainShards // nil but of a pipeline whose stages have replicas
}

// sums are the additive figures of the units before one.
type sums struct {
	static, saved, grads, step, parked, grown int64
	products                                  int // how many units run them
}

// Stretches prepares units in time order. The returned function gives the joined [Summary] of units
// [first, end) in O(1).
func Stretches(units []costmodel.Unit) func(first, end int) Summary {
	return newUnitChain(units).summary
}

// newUnitChain prepares units in time order.
func newUnitChain(units []costmodel.Unit) *unitChain {
	count := len(units)
	chain := &unitChain{sums: make([]sums, count+1)}
	forward, backward := make([]outcome, count), make([]outcome, count)
	head, last := make([]int64, count), make([]int64, count)
	var reading folding
	add := reading.add
	for i := range units {
		summary := reading.of(&units[i], add)
		chain.sums[i+1] = chain.sums[i].plus(&summary)
		forward[i], backward[count-1-i] = summary.folds()
		head[i], last[i] = summary.HeadPeak, summary.LastBackward
	}
	chain.forward, chain.backward = newFolds(forward), newFolds(backward)
	chain.head, chain.last = unlessZero(head), unlessZero(last)
	return chain
}

func (before sums) plus(unit *Summary) sums {
	before.static += unit.Static
	before.saved += unit.Saved
	before.grads += unit.Grads
	before.step += unit.StepTransient
	before.parked += unit.UntilBodyEnd
	before.grown += unit.CacheGrowth
	if unit.Products {
		before.products++
	}
	return before
}

// summary is the joined [Summary] of units [a, b).
func (chain *unitChain) summary(a, b int) Summary {
	if a >= b {
		return Summary{}
	}
	before, end, count := &chain.sums[a], &chain.sums[b], len(chain.sums)-1
	saved := end.saved - before.saved
	out := Summary{
		Static:        end.static - before.static,
		Saved:         saved,
		Grads:         end.grads - before.grads,
		Forward:       chain.forward.of(a, b),
		Backward:      saved + chain.backward.of(count-b, count-a),
		LastBackward:  chain.last.max(a, b),
		StepTransient: end.step - before.step,
		UntilBodyEnd:  end.parked - before.parked,
		CacheGrowth:   end.grown - before.grown,
		HeadPeak:      chain.head.max(a, b),
		Products:      end.products > before.products,
	}
	chain.shards.fill(&out, a, b)
	return out
}

// folds answer for the peak of any stretch of a sequence of folds.
type folds struct {
	net  []int64 // of all before each
	peak sparse  // of each, above what was there before all
}

func newFolds(each []outcome) folds {
	all := folds{net: make([]int64, len(each)+1)}
	peaks := make([]int64, len(each))
	for i, fold := range each {
		peaks[i] = all.net[i] + fold.Peak
		all.net[i+1] = all.net[i] + fold.Net
	}
	all.peak = newSparse(peaks)
	return all
}

// of is the peak of the folds [a, b), a < b.
func (all *folds) of(a, b int) int64 { return all.peak.max(a, b) - all.net[a] }

// sparse holds, per power of two, the maxima of all stretches of that length.
type sparse [][]int64

// unlessZero is nil if all maxima are 0, as of what only some modes have.
func unlessZero(values []int64) sparse {
	if len(values) == 0 || slices.Max(values) <= 0 {
		return nil
	}
	return newSparse(values)
}

func newSparse(values []int64) sparse {
	table := sparse{values}
	for width := 1; 2*width <= len(values); width *= 2 {
		half := table[len(table)-1]
		next := make([]int64, len(values)-2*width+1)
		for i := range next {
			next[i] = max(half[i], half[i+width])
		}
		table = append(table, next)
	}
	return table
}

// max is the maximum of [a, b), a < b.
func (table sparse) max(a, b int) int64 {
	if table == nil {
		return 0
	}
	level := bits.Len(uint(b-a)) - 1
	return max(table[level][a], table[level][b-(1<<level)])
}
