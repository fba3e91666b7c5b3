package instance

import (
	"math"
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// StagePeaks computes the peak of a device in a pipeline.
type StagePeaks struct {
	*Items
	devices
	Costs    func(first, end int) timeline.Summary // by positions in Order
	stages   timeline.Ranks
	schedule costmodel.Schedule
}

// NewStagePeaks prepares the sums.
func NewStagePeaks(items *Items) *StagePeaks {
	in := items.In
	return &StagePeaks{Items: items, devices: newDevices(in), Costs: newChain(items), stages: timeline.NewRanks(in.Costs), schedule: in.Schedule()}
}

// interval returns items [a, b) as units.
func (peaks *StagePeaks) interval(a, b int) costmodel.Interval {
	return costmodel.Interval{First: peaks.Start[a], End: peaks.Start[b]}
}

func (peaks *StagePeaks) stage(device, a, b int) timeline.Rank {
	return timeline.Rank{Schedule: peaks.schedule, Index: int64(device), Chunks: []costmodel.Interval{peaks.interval(a, b)}}
}

// Peak returns the peak of a stage's device with items [a, b).
func (peaks *StagePeaks) Peak(device, a, b int) int64 {
	return peaks.peak(device, peaks.stage(device, a, b)) + peaks.Overhead[device]
}

// peak is a rank's arena, with the GPU's bytes for its host memory.
func (peaks *StagePeaks) peak(device int, rank timeline.Rank) int64 {
	out := peaks.stages.Peak(rank, peaks.residents[device].Workspace)
	if arenas, ok := peaks.stages.(interface {
		HostBytes(rank timeline.Rank) int64
	}); ok {
		out += costmodel.PageTables(arenas.HostBytes(rank))
	}
	return out
}

// Floor returns a lower bound of the peak of a stage's device with at least items [a, b).
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

// Share is the share of a device's budget that [StagePeaks.Used] takes.
func (peaks *StagePeaks) Share(device int, cuts []int) float64 {
	return float64(peaks.Used(device, cuts)) / float64(peaks.In.Topology.Devices[device].Budget())
}

// Used returns the bytes of a device where run c of the cuts is on device c mod p, or in a V (torch
// 2.11, distributed/pipelining/_utils.py, generate_stage_to_rank_mapping).
func (peaks *StagePeaks) Used(device int, cuts []int) int64 {
	rank := timeline.Rank{Schedule: peaks.schedule, Index: int64(device), Chunks: make([]costmodel.Interval, 0, max(2, peaks.schedule.Chunks))}
	step, last := int(peaks.schedule.Stages), len(cuts)-2
	if peaks.schedule.Kind.Vee() {
		step = max(1, last-2*device)
	}
	for c := device; c <= last && len(rank.Chunks) < int(peaks.schedule.Chunks); c += step {
		rank.Chunks = append(rank.Chunks, peaks.interval(cuts[c], cuts[c+1]))
		if peaks.schedule.Kind.Vee() && 2*device == last {
			first, second := rank.Chunks[0].Halves()
			if second.First == second.End {
				return math.MaxInt64
			}
			rank.Chunks = []costmodel.Interval{first, second}
		}
	}
	return peaks.peak(device, rank) + peaks.Overhead[device]
}

// LeastShare returns a lower bound of the share of the device of run c with items [a, b), for any
// other runs.
func (peaks *StagePeaks) LeastShare(c, a, b int) float64 {
	ranks := int(peaks.schedule.Stages)
	device := c % ranks
	rank := timeline.Rank{Schedule: peaks.schedule, Index: int64(device), Chunks: make([]costmodel.Interval, peaks.schedule.Chunks)}
	rank.Chunks[c/ranks] = peaks.interval(a, b)
	return peaks.shareOf(device, peaks.stages.Floor(rank, peaks.residents[device].Workspace, false))
}

// RunsShare returns the share of a device whose runs have these items; an empty run makes it a lower
// bound for any items there.
func (peaks *StagePeaks) RunsShare(device int, runs [][2]int) float64 {
	rank, empty := timeline.Rank{Schedule: peaks.schedule, Index: int64(device)}, false
	for _, run := range runs {
		rank.Chunks = append(rank.Chunks, peaks.interval(run[0], run[1]))
		empty = empty || run[0] == run[1]
	}
	if empty {
		return peaks.shareOf(device, peaks.stages.Floor(rank, peaks.residents[device].Workspace, false))
	}
	return peaks.shareOf(device, peaks.peak(device, rank))
}

func (peaks *StagePeaks) shareOf(device int, peak int64) float64 {
	return float64(peak+peaks.Overhead[device]) / float64(peaks.In.Topology.Devices[device].Budget())
}

// Chain returns the chain problem with these peaks.
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
