package scheduletime

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/stagememory"
)

// cutsOf returns the cuts of a map, by items; nil if it has not the runs of the schedule.
func (question *Question) cutsOf(kind costmodel.ScheduleKind, placement devicemap.Map) (cuts []int) {
	if placement == nil {
		return nil
	}
	for item := range question.Items.Count() {
		if unit := question.Items.Units(item)[0]; item == 0 || placement[unit] != placement[question.Items.Units(item - 1)[0]] {
			cuts = append(cuts, item)
		}
	}
	if len(cuts) != int(question.schedule(kind).Runs()) {
		return nil
	}
	return append(cuts, question.Items.Count())
}

// schedule returns a kind as the schedule of the GPUs.
func (question *Question) schedule(kind costmodel.ScheduleKind) costmodel.Schedule {
	out := costmodel.Schedule{Kind: kind, Stages: int64(len(question.Topology.Devices)), Chunks: 1}
	if kind.Chunked() {
		out.Chunks = 2
	}
	return out
}

func (question *Question) mapOf(kind costmodel.ScheduleKind, cuts []int) devicemap.Map {
	devices := make([]int, question.Items.Count())
	schedule := question.schedule(kind)
	for run := range len(cuts) - 1 {
		for item := cuts[run]; item < cuts[run+1]; item++ {
			devices[item] = int(schedule.RunRank(int64(run)))
		}
	}
	return question.Items.MapOf(devices, nil)
}

// even returns cuts with about the same time on every GPU, and on each of a GPU's runs.
func (prices *prices) even(schedule costmodel.Schedule) []int {
	items, runs, sums := len(prices.works)-1, int(schedule.Runs()), prices.works
	owned := make([]float64, schedule.Stages)
	for run := range runs {
		owned[schedule.RunRank(int64(run))]++
	}
	cuts, share := make([]int, runs+1), 0.
	for run := 1; run < runs; run++ {
		share += 1 / owned[schedule.RunRank(int64(run-1))] / float64(schedule.Stages)
		at, _ := slices.BinarySearch(sums, sums[items]*share)
		if at > 0 && at <= items && sums[items]*share-sums[at-1] < sums[at]-sums[items]*share {
			at--
		}
		cuts[run] = min(max(at, cuts[run-1]+1), items-(runs-run))
	}
	cuts[runs] = items
	return cuts
}

// improve moves cuts, and recomputes as few blocks as fit, alternately.
func (search *search) improve(kind costmodel.ScheduleKind, cuts []int, again []bool) (*Choice, error) {
	best, err := search.evaluate(kind, cuts, again)
	if err != nil {
		return nil, err
	}
	for range 3 {
		before := best
		if next, err := search.fewest(best); err == nil && (next.better(best) || !best.Fits()) {
			best = next
		}
		best = search.climb(best)
		if len(search.Blocks) == 0 || best == before || search.stopped() {
			break
		}
	}
	return best, nil
}

// climb moves cuts as long as that helps.
func (search *search) climb(best *Choice) *Choice {
	stagememory.Moves(len(best.cuts)-1, func(first, last, by int) bool {
		cuts := slices.Clone(best.cuts)
		stagememory.Shift(cuts, first, last, by)
		if search.stopped() || cuts[first] <= cuts[first-1] || cuts[last] >= cuts[last+1] {
			return false
		}
		if next, err := search.against(best, best.Kind, cuts, best.again); err == nil && next.better(best) {
			best = next
			return true
		}
		return false
	})
	return best
}
