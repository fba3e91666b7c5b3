// Package scheduletime finds the order of a pipeline's passes together with its cuts and the blocks
// that it recomputes. It looks for the shortest step that fits. It tries the published orders
// first, with the embedding and the head on the two ends of the GPUs or both on the first. Orders
// of its own follow (package orders).
package scheduletime

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Question is what a search chooses from.
type Question struct {
	// Items are the model's units that can be stages.
	Items    *instance.Items
	Topology *costmodel.Topology
	// Kinds are the orders to try. Own: orders of the search's own may replace them.
	Kinds []costmodel.ScheduleKind
	Own   bool
	// Blocks are the units that can be recomputed, ascending; empty if the workload says which are.
	Blocks []int
	// Table returns the costs of a schedule with these blocks recomputed.
	Table func(kind costmodel.ScheduleKind, again []bool) (*costmodel.Table, error)
	// Start returns the best map of another method for such a table; nil if it has none.
	Start func(table *costmodel.Table) devicemap.Map
	// Stages returns the best map of another method that recomputes all blocks of a stage or none, and
	// these blocks; nil if there is none. The answer is no worse.
	Stages func() (placement devicemap.Map, again []bool)
}

// Choice is a pipeline with its costs and figures.
type Choice struct {
	Kind    costmodel.ScheduleKind
	Map     devicemap.Map
	Table   *costmodel.Table
	Devices []devicemap.Prediction
	Step    float64 // seconds
	Share   float64 // the largest
	Tried   int     // pipelines evaluated, of the whole search

	cuts  []int // of items
	again []bool
}

// Fits reports that no GPU needs more than its budget.
func (choice *Choice) Fits() bool { return choice.Share <= 1 }

// better reports a choice that fits, or fits more nearly, and then has the shorter step.
func (choice *Choice) better(other *Choice) bool {
	if other == nil {
		return true
	}
	over, most := max(1, choice.Share), max(1, other.Share)
	if over != most {
		return over < most
	}
	return choice.Step < other.Step*(1-1e-12)
}

// ErrNone says that no order of the question runs on these GPUs.
var ErrNone = errors.New("no schedule runs here")

type search struct {
	*Question
	ctx   context.Context
	tried int
}

// Solve returns the best choice that it finds. Errors are [ErrNone], with the last reason, or those
// of Table.
func Solve(ctx context.Context, question *Question) (*Choice, error) {
	search := &search{Question: question, ctx: ctx}
	best, starts, err := search.allPublished()
	if best == nil {
		return nil, errors.Join(ErrNone, err)
	}
	for _, at := range []form{{false, false}, {false, true}, {true, true}} {
		if start := starts[at]; start != nil && question.Own {
			if own := search.own(start); own.better(best) {
				best = own
			}
		}
	}
	if !best.Fits() && question.Own { // the order that needs least
		if least, err := search.least(); err == nil && least.Fits() {
			best = search.own(least)
		}
	}
	best.Tried = search.tried
	return best, nil
}

// form is what an order of the search's own keeps of the published order that it starts from.
type form struct{ vee, split bool }

// allPublished returns the best of all published orders, and the best of each form. Without any,
// it returns the last error.
func (search *search) allPublished() (best *Choice, of map[form]*Choice, failed error) {
	of = map[form]*Choice{}
	for _, kind := range search.Kinds {
		if best != nil && search.stopped() {
			break
		}
		found, err := search.published(kind)
		if err != nil {
			failed = err
			continue
		}
		if at := (form{kind.Vee(), kind.Split()}); kind != costmodel.Interleaved && found.better(of[at]) {
			of[at] = found
		}
		if found.better(best) {
			best = found
		}
	}
	return best, of, failed
}

// stopped reports that no time is left.
func (search *search) stopped() bool { return search.ctx.Err() != nil }

// published returns the best cuts and blocks for a published order. It starts from even cuts, and
// from those of another method with no block recomputed and with all.
func (search *search) published(kind costmodel.ScheduleKind) (best *Choice, failed error) {
	for _, all := range []bool{false, true} {
		again := slices.Repeat([]bool{all}, len(search.Blocks))
		table, err := search.Table(kind, again)
		if err != nil {
			return best, err
		}
		var starts [][]int
		if !all {
			starts = append(starts, search.even(kind, table))
		}
		if cuts := search.cutsOf(search.Start(table)); len(cuts) == int(search.schedule(kind).Runs())+1 {
			starts = append(starts, cuts)
		}
		for _, cuts := range starts {
			found, err := search.improve(kind, cuts, again)
			switch {
			case err != nil:
				failed = err
			case found.better(best):
				best = found
			}
		}
		if len(search.Blocks) == 0 {
			break
		}
	}
	if search.Stages != nil {
		placement, again := search.Stages()
		if cuts := search.cutsOf(placement); len(cuts) == int(search.schedule(kind).Runs())+1 {
			if found, err := search.improve(kind, cuts, again); err == nil && found.better(best) {
				best = found
			}
		}
	}
	if best != nil {
		failed = nil
	}
	return best, failed
}

// cutsOf returns the cuts of a map, by items.
func (search *search) cutsOf(placement devicemap.Map) (cuts []int) {
	if placement == nil {
		return nil
	}
	for item := range search.Items.Count() {
		if unit := search.Items.Units(item)[0]; item == 0 || placement[unit] != placement[search.Items.Units(item - 1)[0]] {
			cuts = append(cuts, item)
		}
	}
	return append(cuts, search.Items.Count())
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

// evaluate predicts a pipeline.
func (search *search) evaluate(kind costmodel.ScheduleKind, cuts []int, again []bool) (*Choice, error) {
	table, err := search.Table(kind, again)
	if err != nil {
		return nil, err
	}
	search.tried++
	placement := search.mapOf(kind, cuts)
	step := devicemap.StepSeconds(table, search.Topology, placement)
	if step == nil || math.IsInf(*step, 1) {
		return nil, ErrNone
	}
	out := &Choice{Kind: kind, Table: table, cuts: slices.Clone(cuts), again: slices.Clone(again), Map: placement, Step: *step}
	out.Devices = devicemap.Predict(table, search.Topology, out.Map)
	_, out.Share = instance.Fullest(out.Devices)
	return out, nil
}

// schedule returns a kind as the schedule of the GPUs.
func (search *search) schedule(kind costmodel.ScheduleKind) costmodel.Schedule {
	out := costmodel.Schedule{Kind: kind, Stages: int64(len(search.Topology.Devices)), Chunks: 1}
	if kind.Chunked() {
		out.Chunks = 2
	}
	return out
}

func (search *search) mapOf(kind costmodel.ScheduleKind, cuts []int) devicemap.Map {
	devices := make([]int, search.Items.Count())
	schedule := search.schedule(kind)
	for run := range len(cuts) - 1 {
		for item := cuts[run]; item < cuts[run+1]; item++ {
			devices[item] = int(schedule.RunRank(int64(run)))
		}
	}
	return search.Items.MapOf(devices, nil)
}

// even returns cuts with about the same time on every GPU, and on each of a GPU's runs.
func (search *search) even(kind costmodel.ScheduleKind, table *costmodel.Table) []int {
	schedule := search.schedule(kind)
	items, runs := search.Items.Count(), int(schedule.Runs())
	sums := make([]float64, items+1)
	for item := range items {
		sums[item+1] = sums[item]
		for _, unit := range search.Items.Units(item) {
			took := unitTimes(table, search.Topology, 0, unit)
			sums[item+1] += took.forward + took.input + took.weight
		}
	}
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

// climb moves cuts as long as that helps.
func (search *search) climb(best *Choice) *Choice {
	for moved := true; moved && !search.stopped(); {
		moved = false
		for first := 1; first < len(best.cuts)-1; first++ {
			for last := first; last < len(best.cuts)-1; last++ {
				for _, by := range []int{-1, 1} {
					cuts := slices.Clone(best.cuts)
					for cut := first; cut <= last; cut++ {
						cuts[cut] += by
					}
					if cuts[first] <= cuts[first-1] || cuts[last] >= cuts[last+1] {
						continue
					}
					if next, err := search.evaluate(best.Kind, cuts, best.again); err == nil && next.better(best) {
						best, moved = next, true
					}
				}
			}
		}
	}
	return best
}
