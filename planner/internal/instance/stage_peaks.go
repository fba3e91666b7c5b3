package instance

import (
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// StagePeaks answers what a device of a pipeline needs at its peak.
type StagePeaks struct {
	*Items
	devices
	Costs    func(first, end int) timeline.Summary // of Order
	stages   timeline.Ranks
	schedule costmodel.Schedule
}

// NewStagePeaks prepares the sums.
func NewStagePeaks(items *Items) *StagePeaks {
	in := items.In
	return &StagePeaks{Items: items, devices: newDevices(in), Costs: newChain(items), stages: timeline.NewRanks(in.Costs), schedule: in.Schedule()}
}

// interval is items [a, b) as units.
func (peaks *StagePeaks) interval(a, b int) costmodel.Interval {
	return costmodel.Interval{First: peaks.Start[a], End: peaks.Start[b]}
}

func (peaks *StagePeaks) stage(device, a, b int) timeline.Rank {
	return timeline.Rank{Schedule: peaks.schedule, Index: int64(device), Chunks: []costmodel.Interval{peaks.interval(a, b)}}
}

// Peak is what stage device holds at its peak with items [a, b).
func (peaks *StagePeaks) Peak(device, a, b int) int64 {
	return peaks.stages.Peak(peaks.stage(device, a, b), peaks.residents[device].Workspace) + peaks.Overhead[device]
}

// Floor is what stage device holds at least, with items [a, b) and any more.
func (peaks *StagePeaks) Floor(device, a, b int) int64 {
	return peaks.stages.Floor(peaks.stage(device, a, b), peaks.residents[device].Workspace, true) + peaks.Overhead[device]
}

// Above reports that no cuts have all shares below this one. Each stage in turn takes as
// many items as its floor allows, and no cuts are further on.
func (peaks *StagePeaks) Above(share float64) bool {
	from, stages := 0, len(peaks.Overhead)
	if stages == 1 {
		return peaks.Share(0, []int{0, peaks.Count()}) >= share
	}
	for device := range stages {
		budget := float64(peaks.In.Topology.Devices[device].Budget())
		taken := sort.Search(peaks.Count()-(stages-1-device)-from, func(more int) bool {
			return float64(peaks.Floor(device, from, from+more+1)) >= share*budget
		})
		if taken == 0 {
			return true
		}
		from += taken
	}
	return from < peaks.Count()
}

// Share is the share of device where run c of the cuts is on device c mod p
// (torch 2.11, distributed/pipelining/_utils.py,
// generate_stage_to_rank_mapping).
func (peaks *StagePeaks) Share(device int, cuts []int) float64 {
	rank := timeline.Rank{Schedule: peaks.schedule, Index: int64(device)}
	for c := device; c < len(cuts)-1; c += int(peaks.schedule.Stages) {
		rank.Chunks = append(rank.Chunks, peaks.interval(cuts[c], cuts[c+1]))
	}
	return peaks.shareOf(device, peaks.stages.Peak(rank, peaks.residents[device].Workspace))
}

// LeastShare is what the share of the device of run c with items [a, b) is at
// least, whatever its other runs.
func (peaks *StagePeaks) LeastShare(c, a, b int) float64 {
	ranks := int(peaks.schedule.Stages)
	device := c % ranks
	rank := timeline.Rank{Schedule: peaks.schedule, Index: int64(device), Chunks: make([]costmodel.Interval, peaks.schedule.Chunks)}
	rank.Chunks[c/ranks] = peaks.interval(a, b)
	return peaks.shareOf(device, peaks.stages.Floor(rank, peaks.residents[device].Workspace, false))
}

func (peaks *StagePeaks) shareOf(device int, peak int64) float64 {
	return float64(peak+peaks.Overhead[device]) / float64(peaks.In.Topology.Devices[device].Budget())
}

// Chain is the chain problem with these peaks.
func (peaks *StagePeaks) Chain() chain.Problem {
	out := peaks.Items.Chain()
	out.Peak = func(device, a, b int, _ uint64) int64 {
		if a >= b {
			return peaks.Idle[device]
		}
		return peaks.Peak(device, a, b)
	}
	out.Floor, out.Filled = func(device, a, b int, _ uint64) int64 { return peaks.Floor(device, a, b) }, true
	return out
}
