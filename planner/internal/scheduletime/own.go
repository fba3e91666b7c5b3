package scheduletime

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/orders"
)

// perSecond is the number of the solver's units of time in a second.
const perSecond = 1e12

// own looks for a better order for the cuts of a choice, then for better cuts and blocks for that
// order. It starts again with no block recomputed: less memory in the order may replace it.
func (search *search) own(start *Choice) *Choice {
	best := search.turns(start)
	if slices.Contains(start.again, true) {
		if plain, err := search.evaluate(start.Kind, start.cuts, make([]bool, len(start.again))); err == nil {
			if other := search.turns(plain); other.better(best) {
				best = other
			}
		}
	}
	return best
}

func (search *search) turns(start *Choice) *Choice {
	best := start
	for range 3 {
		next := search.ordered(best)
		if next == nil || !next.better(best) || search.stopped() {
			break
		}
		best = next
		if moved, err := search.improve(best.Kind, best.cuts, best.again); err == nil && moved.better(best) {
			best = moved
		}
	}
	return best
}

// ordered returns the choice with the shortest order found for its cuts and blocks.
func (search *search) ordered(from *Choice) *Choice {
	problem := search.problem(from)
	if problem == nil {
		return nil
	}
	starts, least := search.starts(from), problem.LeastCaps()
	// Arenas have parts for each chunk, and channels hold two messages, which the solver does not
	// know. It tries again with smaller caps.
	const attempts, smaller = 6, 25
	for range attempts {
		solution, err := orders.Solve(search.ctx, *problem, orders.Settings{Starts: starts, Effort: 500_000, Nodes: 10_000})
		if err != nil || certificate.CheckOrder(problem, solution) != nil {
			return nil
		}
		next, err := search.evaluate(search.kindOf(from, solution.Order), from.cuts, from.again)
		if err == nil && next.Fits() {
			return next
		}
		for gpu := range problem.Caps {
			less := problem.Caps[gpu] / smaller
			if err == nil {
				less = max(0, -next.Devices[gpu].HeadroomBytes)
			}
			problem.Caps[gpu] = max(least[gpu], min(problem.Caps[gpu], solution.Peaks[gpu])-less)
		}
	}
	return nil
}

// problem returns the numbers of a choice's chunks; nil if its memory leaves nothing for them.
func (search *search) problem(from *Choice) *orders.Problem {
	out := &orders.Problem{Ahead: int(costmodel.StageRulesOf(from.Table.Workload.Runtime).Slots), MicroBatches: int(max(1, from.Table.Workload.MicroBatches)), Joint: !from.Kind.Split(), Caps: make([]int64, len(search.Topology.Devices))}
	stages := stagesOf(from)
	for chunk, stage := range stages {
		gpu := int(from.Map[stage.First])
		var took seconds
		var saved bytes
		for unit := stage.First; unit < stage.End; unit++ {
			took.add(unitTimes(from.Table, search.Topology, gpu, unit))
			more := unitBytes(&from.Table.Units[unit])
			saved.toInput, saved.toWeight, saved.between = saved.toInput+more.toInput, saved.toWeight+more.toWeight, saved.between+more.between
		}
		whole := func(seconds float64) int64 { return int64(math.Round(seconds * perSecond)) }
		one := orders.Chunk{
			GPU: gpu, Forward: max(1, whole(took.forward)), Input: max(1, whole(took.input)), Weight: whole(took.weight),
			ToInput: saved.toInput, ToWeight: saved.toWeight, Between: saved.between,
		}
		if chunk+1 < len(stages) {
			next, bytes := int(from.Map[stage.End]), from.Table.Units[stage.End-1].Work.Output
			if next == gpu {
				bytes = 0
			}
			one.Send, one.Back = whole(search.Topology.SendSeconds(gpu, next, bytes)), whole(search.Topology.SendSeconds(next, gpu, bytes))
		}
		out.Chunks = append(out.Chunks, one)
	}
	for gpu := range out.Caps {
		out.Caps[gpu] = from.Devices[gpu].HeadroomBytes + search.saved(from, out, gpu)
	}
	for gpu, least := range out.LeastCaps() {
		if out.Caps[gpu] < least {
			return nil
		}
	}
	return out
}

// stagesOf returns the units of each stage.
func stagesOf(from *Choice) (out []costmodel.Interval) {
	middle := costmodel.Middle(from.Kind, from.Map)
	for unit := range from.Map {
		if unit == 0 || from.Map[unit] != from.Map[unit-1] || unit == middle {
			out = append(out, costmodel.Interval{First: unit})
		}
		out[len(out)-1].End = unit + 1
	}
	return out
}

// saved returns the bytes that a GPU keeps for its micro-batches in flight.
func (search *search) saved(from *Choice, problem *orders.Problem, gpu int) (total int64) {
	schedule := search.scheduled(from)
	depths := order.Depths(schedule.Chunks, order.Phases(schedule, int64(gpu))...)
	at := 0
	for i := range problem.Chunks {
		if chunk := &problem.Chunks[i]; chunk.GPU == gpu {
			total += depths[at].Saved*chunk.ToInput + depths[at].Late*chunk.ToWeight + depths[at].Pending*chunk.Between
			at++
		}
	}
	return total
}

// scheduled returns the schedule of a choice.
func (search *search) scheduled(from *Choice) costmodel.Schedule {
	return costmodel.NewSchedule(&from.Table.Workload, int64(len(search.Topology.Devices)), search.schedule(from.Kind).Chunks)
}

// passes are the solver's passes of actions. It has no name for a whole backward.
var passes = [...]orders.Kind{order.Forward: orders.Forward, order.Backward: orders.Input, order.Input: orders.Input, order.Weight: orders.Weight}

// starts are the orders of the question with the same chunks.
func (search *search) starts(from *Choice) (out []orders.Order) {
	for _, kind := range append([]costmodel.ScheduleKind{from.Kind}, search.Kinds...) {
		if kind.Vee() != from.Kind.Vee() || kind.Split() != from.Kind.Split() || kind == costmodel.Interleaved {
			continue
		}
		schedule := search.scheduled(from)
		schedule.Kind = kind
		rows := make(orders.Order, len(search.Topology.Devices))
		for gpu := range rows {
			for _, action := range order.Of(schedule, int64(gpu)) {
				rows[gpu] = append(rows[gpu], orders.Pass{Kind: passes[action.Kind], Chunk: int(schedule.Stage(int64(gpu), action.Chunk))})
			}
		}
		out = append(out, rows)
	}
	return out
}

// kindOf returns the schedule that names an order.
func (search *search) kindOf(from *Choice, found orders.Order) costmodel.ScheduleKind {
	rows, schedule := make([][]order.Action, len(found)), search.schedule(from.Kind)
	for gpu, row := range found {
		next := map[orders.Pass]int64{}
		for _, pass := range row {
			_, chunk := schedule.Place(int64(pass.Chunk))
			action := order.Action{Kind: order.Forward, Chunk: chunk, MicroBatch: next[pass]}
			next[pass]++
			switch {
			case pass.Kind == orders.Weight:
				action.Kind = order.Weight
			case pass.Kind == orders.Input && from.Kind.Split():
				action.Kind = order.Input
			case pass.Kind == orders.Input:
				action.Kind = order.Backward
			}
			rows[gpu] = append(rows[gpu], action)
		}
	}
	return order.Given(from.Kind.Vee(), rows)
}
