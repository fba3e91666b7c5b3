package stagememory

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// maxSizes limits the sizes of runs that [Looped.counts] tries on all devices.
const maxSizes = 100_000

// blocks are the items of one kind with the same items between any two neighbours. So any n of
// them in a row cost the same, and the memory of a device depends on how many its runs have.
type blocks struct {
	at            []int // in ascending order
	before, after int   // other items ahead of them and behind them, without the model's ends
	gaps          bool  // there are items between them
}

// itemKind is what an item adds to a device.
type itemKind struct {
	timeline.Summary
	output, padding int64
}

// kindOf returns the kind of an item.
func kindOf(peaks *instance.StagePeaks, item int) itemKind {
	units := peaks.Units(item)
	out := itemKind{Summary: peaks.Costs(peaks.Start[item], peaks.Start[item+1])}
	for _, unit := range units {
		out.padding += peaks.In.Costs.Units[unit].StatePadding
	}
	out.output = peaks.In.Costs.Units[units[len(units)-1]].Output
	return out
}

// blocksOf finds the most frequent kind with equal gaps. There is none if messages between stages
// differ in size.
func blocksOf(peaks *instance.StagePeaks) (best blocks) {
	items, places := peaks.Count(), make(map[itemKind][]int)
	kinds := make([]itemKind, items)
	for item := range items - 1 {
		kinds[item] = kindOf(peaks, item)
		if kinds[item].output != kinds[0].output {
			return blocks{}
		}
		if item > 0 {
			places[kinds[item]] = append(places[kinds[item]], item)
		}
	}
	for _, at := range places {
		gap := kinds[at[0]+1 : at[min(1, len(at)-1)]+1]
		equal := len(at) > 1
		for i := 1; i < len(at); i++ {
			equal = equal && slices.Equal(kinds[at[i-1]+1:at[i]+1], gap)
		}
		if equal && (len(at) > len(best.at) || len(at) == len(best.at) && at[0] < best.at[0]) {
			best = blocks{at: at, before: at[0] - 1, after: items - 2 - at[len(at)-1], gaps: len(gap) > 1}
		}
	}
	return best
}

// counts bounds the largest share of any cuts by numbers of blocks. For each device it finds the
// least share with so many blocks, over all ways to spread them over its runs. The blocks then go
// one by one to the device that has the least share with one more. No cuts have all shares below
// the largest of these. It sets cuts with these numbers if they exist. The bound is 0 if the model
// has no blocks, or too many sizes, and at most the cutoff.
func (looped *Looped) counts(ctx context.Context, cutoff float64) (bound float64, set bool) {
	count := blockCount{Looped: looped, blocks: blocksOf(looped.StagePeaks), cutoff: cutoff}
	if len(count.at) == 0 || costmodel.StageRulesOf(looped.In.Costs.Workload.Runtime).Arena { // its regions depend on more
		return 0, false
	}
	needs, taken := make([][]deviceCount, len(looped.share)), make([]int, len(looped.share))
	for device := range needs {
		if needs[device] = count.device(device); ctx.Err() != nil || count.tried > maxSizes {
			return 0, false
		}
		bound = max(bound, needs[device][0].share)
	}
	more := func(device int) deviceCount { return needs[device][min(taken[device]+1, len(needs[device])-1)] }
	for range count.at {
		least := 0
		for device := range needs {
			if more(device).share < more(least).share {
				least = device
			}
		}
		if bound = max(bound, more(least).share); bound >= cutoff {
			return cutoff, false
		}
		taken[least]++
	}
	sizes := make([]int, len(looped.Cuts)-1)
	for device := range needs {
		for chunk, size := range needs[device][taken[device]].sizes {
			sizes[chunk*len(needs)+device] = size
		}
	}
	return bound, looped.setSizes(count.blocks, sizes)
}

// setSizes sets cuts with about so many blocks in each run; false: a run would be empty.
func (looped *Looped) setSizes(blocks blocks, sizes []int) bool {
	cuts, taken := make([]int, len(sizes)+1), 0
	for run, size := range sizes {
		cuts[run+1] = cuts[run] + 1 // other items, if it has no blocks
		if taken += size; size > 0 && taken <= len(blocks.at) {
			cuts[run+1] = max(cuts[run+1], blocks.at[taken-1]+1)
		}
	}
	if cuts[len(sizes)-1] >= looped.Count() {
		return false
	}
	cuts[len(sizes)] = looped.Count()
	copy(looped.Cuts, cuts)
	return true
}

// EvenBlocks sets cuts with about as many blocks in each run; false if the model has none.
func (looped *Looped) EvenBlocks() bool {
	blocks, sizes := blocksOf(looped.StagePeaks), make([]int, len(looped.Cuts)-1)
	for run := range sizes {
		sizes[run] = len(blocks.at)*(run+1)/len(sizes) - len(blocks.at)*run/len(sizes)
	}
	return len(blocks.at) > 0 && looped.setSizes(blocks, sizes)
}

// deviceCount is the least share of a device with a number of blocks or more, and the blocks of its
// runs.
type deviceCount struct {
	share float64
	sizes []int
}

// blockCount is the search of [Looped.counts].
type blockCount struct {
	*Looped
	blocks

	cutoff float64
	tried  int
}

// device returns the least shares by number of blocks. The last is the cutoff.
func (count *blockCount) device(device int) (out []deviceCount) {
	sizes := make([]int, count.schedule.Chunks)
	var try func(chunk, total int)
	try = func(chunk, total int) {
		for size := count.least(chunk*len(count.share) + device); total+size <= len(count.at); size++ {
			sizes[chunk] = size
			clear(sizes[chunk+1:])
			count.tried++
			share := count.shareWith(device, sizes)
			switch {
			case share >= count.cutoff || count.tried > maxSizes:
				return
			case chunk < len(sizes)-1:
				try(chunk+1, total+size)
				continue
			}
			for len(out) <= total+size {
				out = append(out, deviceCount{share: count.cutoff})
			}
			if share < out[total+size].share {
				out[total+size] = deviceCount{share, slices.Clone(sizes)}
			}
		}
	}
	try(0, 0)
	out = append(out, deviceCount{share: count.cutoff})
	for total := len(out) - 2; total >= 0; total-- { // more blocks may need less with other runs
		if out[total+1].share < out[total].share {
			out[total] = out[total+1]
		}
	}
	return out
}

// least is the number of blocks that a run has at least.
func (count *blockCount) least(run int) int {
	last := len(count.Cuts) - 2
	if run == 0 || run == last || count.gaps || run <= count.before || run >= last-count.after {
		return 0
	}
	return 1
}

// shareWith is the least share of a device whose runs have so many blocks.
func (count *blockCount) shareWith(device int, sizes []int) float64 {
	runs, from := make([][2]int, len(sizes)), 0
	for chunk, size := range sizes {
		first, end := 0, 0
		if size > 0 {
			first, end = count.at[from], count.at[from+size-1]+1
		}
		switch run := chunk*len(count.share) + device; run {
		case 0:
			first, end = 0, max(1, end)
		case len(count.Cuts) - 2:
			first, end = count.Count()-1, count.Count()
			if size > 0 {
				first = count.at[len(count.at)-size]
			}
		}
		runs[chunk], from = [2]int{first, end}, from+size
	}
	return count.RunsShare(device, runs)
}
