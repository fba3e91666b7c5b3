package serve

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/serve/internal/paged"
)

// split is the search for the layers of each stage.
type split struct {
	question *RankQuestion
	set      paged.Settings
	pool     *paged.Pool
	gpus     []paged.GPU
}

// blocks are those of the cache for a split.
func (split *split) blocks(counts []int) int64 {
	blocks, _ := split.set.Split(split.question.Model, split.pool, split.gpus, counts)
	return blocks
}

// fills gives each stage layers, at least one, as fits allows, and reports whether all have a place. A
// stage's memory grows with its layers: from each layer it reaches some end, and from a later layer
// none before that.
func (split *split) fills(counts []int, fits func(stage, first, end int) bool) bool {
	all := len(split.question.Model.Layers)
	reached := make([][]bool, len(counts)+1) // before each stage, the layers with which it can begin
	for stage := range reached {
		reached[stage] = make([]bool, all+1)
	}
	reached[0][0] = true
	for stage := range counts {
		for at, end := 0, 0; at < all; at++ {
			if !reached[stage][at] {
				continue
			}
			end = max(end, at)
			for end < all && fits(stage, at, end+1) {
				end++
			}
			for next := at + 1; next <= end; next++ {
				reached[stage+1][next] = true
			}
		}
	}
	if !reached[len(counts)][all] {
		return false
	}
	end := all
	for stage := len(counts) - 1; stage >= 0; stage-- {
		first := end - 1
		for !reached[stage][first] || !fits(stage, first, end) {
			first--
		}
		counts[stage] = end - first
		end = first
	}
	return true
}

// best is a split with the most blocks, and of these the most balanced one. No split with as many
// blocks has a largest share of bound or less.
func (split *split) best() (counts []int, bound float64) {
	counts = make([]int, len(split.gpus))
	if split.set.Engine == paged.SGLang {
		return split.bestOfLeast(counts)
	}
	within := func(blocks int64, share float64) func(stage, first, end int) bool {
		return func(stage, first, end int) bool {
			gpu := split.gpus[stage]
			rank := split.set.Rank(split.question.Model, gpu, first, end)
			needs := rank.Total() - rank.Cache + split.pool.Bytes(blocks, first, end)
			return needs <= rank.Total() && float64(needs) <= share*float64(gpu.Free)
		}
	}
	low, high := int64(0), int64(1)
	for split.fills(counts, within(high, 1)) && high < math.MaxInt32 {
		low, high = high, 2*high
	}
	low, _ = bisected(low, high, 1, func(blocks int64) bool { return split.fills(counts, within(blocks, 1)) })
	if low == 0 {
		return split.set.Stages(len(split.question.Model.Layers), len(split.gpus)), 0
	}
	const precision = 1e-9
	below, share := bisected(0.0, 1.0, precision, func(share float64) bool { return !split.fills(counts, within(low, share)) })
	split.fills(counts, within(low, share))
	return counts, below
}

// bisected narrows a range, in which low fits and high does not, to a width of at most precision.
func bisected[number int64 | float64](low, high, precision number, fits func(number) bool) (lower, upper number) {
	for high-low > precision {
		if middle := (low + high) / 2; fits(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, high
}

// bestOfLeast is the search for an engine whose ranks all have what the fullest one has left: for each
// number of layers that a stage may have at most, the split whose fullest rank has the most left.
func (split *split) bestOfLeast(counts []int) ([]int, float64) {
	model := split.question.Model
	best := split.set.Stages(len(model.Layers), len(split.gpus))
	if len(split.gpus) == 1 {
		return best, 1
	}
	largest := split.blocks(best)
	ends := make([]int64, len(model.Layers)+1) // bytes of the layers before each
	for i := range model.Layers {
		ends[i+1] = ends[i] + split.set.Weights(model, i, i+1)
	}
	// Bytes that the fullest stage has left: splits with less than least count as none.
	const least, most, precision = int64(math.MinInt32) << 8, int64(math.MaxInt32) << 16, int64(1 << 10)
	weights := func(first, end int) int64 {
		return ends[end] - ends[first] - int64(end-first-1)*model.Rope
	}
	for limit := (len(model.Layers) + len(counts) - 1) / len(counts); limit <= len(model.Layers)-len(counts)+1; limit++ {
		within := func(left int64) func(stage, first, end int) bool {
			return func(stage, first, end int) bool {
				return end-first <= limit && weights(first, end)+left <= split.gpus[stage].Free
			}
		}
		if !split.fills(counts, within(least)) {
			continue
		}
		left, _ := bisected(least, most, precision, func(left int64) bool { return split.fills(counts, within(left)) })
		split.fills(counts, within(left))
		if blocks := split.blocks(counts); blocks > largest {
			best, largest = slices.Clone(counts), blocks
		}
	}
	return best, 1
}
