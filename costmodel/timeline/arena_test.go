package timeline_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// arenaTable is a chain of units with any part of an arena: some add to their input in place, some
// pass, some are recomputed, some read another's weights.
func arenaTable(rng *rand.Rand) *costmodel.Table {
	table := &costmodel.Table{Workspaces: 2, Workload: costmodel.Workload{
		Runtime: costmodel.Devmap, Mode: []costmodel.Mode{costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load}[rng.IntN(4)],
		MicroBatches: []int64{1, 1, 2, 3, 5, 8}[rng.IntN(6)],
	}}
	workload := &table.Workload
	workload.Batch = workload.MicroBatches * 3
	if workload.Mode == costmodel.Infer && rng.IntN(2) == 0 {
		workload.NewTokens = rng.Int64N(6)
	}
	if workload.Mode == costmodel.Train && rng.IntN(3) == 0 {
		workload.OffloadActivations = costmodel.OffloadAll
	}
	size := func(most int64) int64 { return costmodel.RegionAlign * rng.Int64N(most) }
	count, first := 1+rng.IntN(12), true
	large := []int64{5, 50, 500}
	saved, grads, scratch, message := large[rng.IntN(3)], large[rng.IntN(3)], large[rng.IntN(3)], 20*large[rng.IntN(3)]
	for i := range count {
		unit := costmodel.Unit{Name: fmt.Sprintf("unit.%d", i)}
		regions := &unit.Regions
		if rng.IntN(5) == 0 {
			regions.Passes, regions.Output = true, size(3)
			table.Units = append(table.Units, unit)
			continue
		}
		unit.Products = rng.IntN(3) > 0
		*regions = costmodel.Regions{
			Weights: 1024 + size(100), Grads: 2048 + size(grads), Master: 2048 + size(100), State: 4096 + size(100), Cache: size(20), Saved: size(saved),
			Forward: size(scratch), Backward: size(scratch), Decode: size(scratch),
			Output: costmodel.RegionAlign + size(message), Token: costmodel.RegionAlign, Tensors: rng.Int64N(40),
		}
		if !first && rng.IntN(3) > 0 {
			regions.Input = size(saved)
		}
		first = false
		if rng.IntN(3) == 0 {
			regions.Remade, regions.Saved = regions.Saved, 0
			regions.Forward += regions.Remade
			regions.Backward += regions.Remade
		}
		if workload.OffloadActivations != "" {
			regions.Moved = min(regions.Input, 2+workload.MicroBatches%2) * rng.Int64N(2)
		}
		if i > 0 && rng.IntN(4) == 0 {
			regions.Tied = []costmodel.Tie{{Owner: rng.IntN(2), Tensor: []string{"a", "b"}[rng.IntN(4)/3], Weights: 512, Master: 1024, State: 2048, Grads: 1024}}
			if owner := &regions.Tied[0].Owner; *owner == i || table.Units[*owner].Regions.Passes {
				regions.Tied = nil
			}
		}
		table.Units = append(table.Units, unit)
	}
	last := &table.Units[count-1].Regions
	if !last.Passes {
		last.Result = size(30)
		if workload.Mode == costmodel.Load {
			last.Result = 0
		}
	}
	table.Units[0].Regions.Feed = size(9)
	return table
}

// arenaPlaces are the ranks of a random pipeline, or a device map with runs on any device.
func arenaPlaces(rng *rand.Rand, table *costmodel.Table) []timeline.Rank {
	count := len(table.Units)
	workload := &table.Workload
	if rng.IntN(2) == 0 {
		workload.Strategy = costmodel.DeviceMap
		devices := 1 + rng.IntN(3)
		var order []int
		owned := map[int][]costmodel.Interval{}
		for begin := 0; begin < count; {
			end := begin + 1 + rng.IntN(count-begin)
			device := rng.IntN(devices)
			if runs := owned[device]; len(runs) > 0 && runs[len(runs)-1].End == begin {
				owned[device][len(runs)-1].End = end
			} else {
				owned[device] = append(runs, costmodel.Interval{First: begin, End: end})
			}
			if !slices.Contains(order, device) {
				order = append(order, device)
			}
			begin = end
		}
		for i := range table.Units { // ties stay on one device
			regions := &table.Units[i].Regions
			regions.Tied = slices.DeleteFunc(regions.Tied, func(tie costmodel.Tie) bool {
				return !slices.ContainsFunc(slices.Collect(maps.Values(owned)), func(runs []costmodel.Interval) bool {
					has := func(unit int) bool {
						return slices.ContainsFunc(runs, func(at costmodel.Interval) bool { return at.First <= unit && unit < at.End })
					}
					return has(i) && has(tie.Owner)
				})
			})
		}
		var out []timeline.Rank
		for rank, device := range order {
			out = append(out, timeline.Rank{Schedule: costmodel.NewSchedule(workload, int64(len(order)), 1), Index: int64(rank), Chunks: owned[device]})
		}
		return out
	}
	workload.Strategy = costmodel.Pipeline
	workload.Schedule = []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.Interleaved}[rng.IntN(3)]
	ranks, chunks := 1+rng.IntN(min(4, count)), 1
	if workload.Schedule == costmodel.Interleaved {
		chunks = 1 + rng.IntN(count/ranks)
	}
	cuts := rng.Perm(count - 1)[:ranks*chunks-1]
	for i := range cuts {
		cuts[i]++
	}
	slices.Sort(cuts)
	cuts = append(append([]int{0}, cuts...), count)
	out := make([]timeline.Rank, ranks)
	for rank := range out {
		out[rank] = timeline.Rank{Schedule: costmodel.NewSchedule(workload, int64(ranks), int64(chunks)), Index: int64(rank)}
		for c := rank; c < ranks*chunks; c += ranks {
			out[rank].Chunks = append(out[rank].Chunks, costmodel.Interval{First: cuts[c], End: cuts[c+1]})
		}
	}
	return out
}

// TestArenaChain: a search's arena is the walk's, for any units, cuts and schedules.
func TestArenaChain(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 1))
	seen := map[string]int{}
	for i := range 20_000 {
		table := arenaTable(rng)
		places := arenaPlaces(rng, table)
		chain := timeline.NewRanks(table)
		device := &costmodel.Device{WorkspaceBytes: rng.Int64N(3000)}
		for _, place := range places {
			peak := timeline.RankStep(table, place, device).Peak()
			got := chain.Peak(place, table.Workspaces*device.WorkspaceBytes)
			if want := peak.Memory.Total(); got != want {
				t.Fatalf("%d: %+v %+v: %d, by the walk %d (%s)\n%+v", i, table.Workload, place, got, want, peak.At, table.Units)
			}
			if peak.Memory.Workspace < 0 || peak.Memory.Activations < 0 || peak.Memory.CommBuffers < 0 {
				t.Fatalf("%d: %+v: more is alive than the arena has: %+v", i, place, peak)
			}
			seen[string(table.Workload.Mode)]++
			seen[string(table.Workload.Schedule)]++
			seen[peak.At[:4]]++
		}
	}
	for _, what := range []string{"train", "infer", "load", "gpipe", "1f1b", "interleaved", "", "forw", "back", "reco", "deco", "opti"} {
		if seen[what] < 100 {
			t.Errorf("%d of %q: the draw is one-sided: %v", seen[what], what, seen)
		}
	}
}

// TestArenaFloor: no device that holds these units and more is below the floor.
func TestArenaFloor(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 2))
	near := 0
	for i := range 6000 {
		table := arenaTable(rng)
		places := arenaPlaces(rng, table)
		chain := timeline.NewRanks(table)
		place := places[rng.IntN(len(places))]
		peak, floor := chain.Peak(place, 700), chain.Floor(place, 700, len(place.Chunks) == 1 || place.Schedule.Kind == "")
		if floor > peak {
			t.Fatalf("%d: %+v: %d, and its floor is %d", i, place, peak, floor)
		}
		if 10*floor >= 9*peak {
			near++
		}
		less := place
		less.Chunks = slices.Clone(place.Chunks)
		if place.Schedule.Kind != "" && len(place.Chunks) > 1 { // some chunks are open
			for c := range less.Chunks {
				if rng.IntN(2) == 0 {
					less.Chunks[c] = costmodel.Interval{}
				}
			}
			if floor := chain.Floor(less, 700, false); floor > peak {
				t.Fatalf("%d: %+v is %d, and the floor of %v is %d", i, place, peak, less.Chunks, floor)
			}
			continue
		}
		c := rng.IntN(len(less.Chunks))
		at := less.Chunks[c]
		at.First += rng.IntN(at.End - at.First)
		at.End -= rng.IntN(at.End - at.First)
		less.Chunks[c] = at
		if floor := chain.Floor(less, 700, true); floor > peak {
			t.Fatalf("%d: %+v is %d, and the floor of %v is %d", i, place, peak, less.Chunks, floor)
		}
	}
	if near < 3000 {
		t.Errorf("%d floors of 6000 within a tenth", near)
	}
}
