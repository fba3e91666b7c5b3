package stagememory

import (
	"context"
	"math"
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
// the largest of these. Cuts with these numbers are set if they exist. The bound is 0 if the model
// has no blocks, or there are too many sizes. A bound of at least the cutoff is not computed any
// further.
func (looped *Looped) counts(ctx context.Context, cutoff float64) (bound float64, set bool) {
	if costmodel.StageRulesOf(looped.In.Costs.Workload.Runtime).Arena {
		return 0, false // its regions depend on more than a kind
	}
	count := blockCount{Looped: looped, blocks: blocksOf(looped.StagePeaks), cutoff: cutoff}
	if len(count.at) == 0 {
		return 0, false
	}
	ranks := len(looped.share)
	needs, taken := make([][]deviceCount, ranks), make([]int, ranks)
	for device := range ranks {
		if needs[device] = count.device(device); ctx.Err() != nil || count.tried > maxSizes {
			return 0, false
		}
		bound = max(bound, needs[device][0].share)
	}
	for range count.at {
		least := 0
		for device := range ranks {
			if needs[device][min(taken[device]+1, len(needs[device])-1)].share < needs[least][min(taken[least]+1, len(needs[least])-1)].share {
				least = device
			}
		}
		taken[least] = min(taken[least]+1, len(needs[least])-1)
		if bound = max(bound, needs[least][taken[least]].share); bound >= cutoff {
			return cutoff, false
		}
	}
	sizes := make([]int, len(looped.Cuts)-1)
	for device := range ranks {
		for chunk, size := range needs[device][taken[device]].sizes {
			sizes[chunk*ranks+device] = size
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

// deviceCount is the least share of a device with so many blocks or more, and the blocks of its
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

// device returns the least shares by number of blocks, the last one at least the cutoff.
func (count *blockCount) device(device int) []deviceCount {
	chunks := int(count.schedule.Chunks)
	out := []deviceCount{}
	sizes := make([]int, chunks)
	var try func(chunk, total int)
	try = func(chunk, total int) {
		if chunk == chunks {
			share := count.shareWith(device, sizes)
			for len(out) <= total {
				out = append(out, deviceCount{share: count.cutoff})
			}
			if share < out[total].share {
				out[total] = deviceCount{share, slices.Clone(sizes)}
			}
			return
		}
		for size := count.least(chunk*len(count.share) + device); total+size <= len(count.at); size++ {
			sizes[chunk] = size
			clear(sizes[chunk+1:])
			if count.tried++; count.tried > maxSizes || count.shareWith(device, sizes) >= count.cutoff {
				break
			}
			try(chunk+1, total+size)
		}
		sizes[chunk] = 0
	}
	try(0, 0)
	out = append(out, deviceCount{share: math.Max(count.cutoff, 0)})
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
		switch run := chunk*len(count.share) + device; {
		case run == 0:
			runs[chunk] = [2]int{0, 1}
			if size > 0 {
				runs[chunk][1] = count.at[size-1] + 1
			}
		case run == len(count.Cuts)-2:
			runs[chunk] = [2]int{count.Count() - 1, count.Count()}
			if size > 0 {
				runs[chunk][0] = count.at[len(count.at)-size]
			}
		case size > 0:
			runs[chunk] = [2]int{count.at[from], count.at[from+size-1] + 1}
		}
		from += size
	}
	return count.RunsShare(device, runs)
}
