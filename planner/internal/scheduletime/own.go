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

// turns finds an order, then better cuts and blocks for it, in turn. A choice gives the first order.
func (search *search) turns(at form, cuts []int, again []bool, from *Choice, effort int) {
	var best *Choice
	for range 3 {
		next := search.ordered(at, cuts, again, from, effort)
		if next == nil || !next.better(best) || search.stopped() {
			break
		}
		best = next
		if moved, err := search.improve(best.Kind, best.cuts, best.again); err == nil && moved.better(best) {
			moved.form, moved.rule, moved.order = best.form, best.rule, best.order
			best = moved
		}
		search.keep(best)
		if from != nil {
			from = best
		} else if slices.Equal(best.cuts, cuts) && slices.Equal(best.again, again) {
			break // the next order is the same
		}
		cuts, again = best.cuts, best.again
	}
}

// ordered returns the choice with the shortest order found for these cuts and blocks.
func (search *search) ordered(at form, cuts []int, again []bool, from *Choice, effort int) *Choice {
	problem, base := search.problem(at, cuts, again)
	if problem == nil {
		return nil
	}
	settings := orders.Settings{Starts: search.starts(at, base, problem), Effort: effort, Nodes: 10_000}
	if from != nil {
		settings.Rule, settings.Moves = from.rule, moves
		settings.Starts = append(settings.Starts, from.order)
	}
	solution, err := orders.Solve(search.ctx, *problem, settings)
	if err != nil || certificate.CheckOrder(problem, solution) != nil {
		return nil
	}
	return search.with(at, problem, cuts, again, solution)
}

// with returns the choice with an order; nil if it does not fit.
func (search *search) with(at form, problem *orders.Problem, cuts []int, again []bool, solution *orders.Solution) *Choice {
	next, err := search.evaluate(search.kindOf(at, problem, solution.Order), cuts, again)
	if err != nil || !next.Fits() {
		return nil
	}
	next.form, next.rule, next.order = at, solution.Rule, solution.Order
	return next
}

// middling is a number of micro-batches with which orders are still quick to move.
const middling = 64

// long keeps the choices of a search with fewer micro-batches, for all of them. A rule makes the order.
func (search *search) long(short *search) {
	for _, found := range short.of {
		if found.rule == nil {
			continue
		}
		problem, _ := search.problem(found.form, found.cuts, found.again)
		if problem == nil {
			continue
		}
		order, length := found.rule.Order(problem)
		solution := &orders.Solution{Order: order, Replayed: orders.Replayed{Length: length}, Rule: found.rule}
		if order == nil || certificate.CheckOrder(problem, solution) != nil {
			continue
		}
		if next := search.with(found.form, problem, found.cuts, found.again, solution); next != nil {
			search.keep(next)
			if search.batches <= middling {
				search.turns(found.form, next.cuts, next.again, nil, effort)
			}
		}
	}
}

// problem returns the numbers of the chunks, and the choice that runs one micro-batch after the
// other; nil if that does not fit.
func (search *search) problem(at form, cuts []int, again []bool) (*orders.Problem, *Choice) {
	table, err := search.Table(search.plain(at), again)
	if err != nil || table.Workload.MicroBatches < 2 {
		return nil, nil
	}
	base, err := search.evaluate(search.plain(at), cuts, again)
	if err != nil || !base.Fits() {
		return nil, nil
	}
	out := &orders.Problem{Ahead: int(costmodel.StageRulesOf(table.Workload.Runtime).Slots), MicroBatches: int(table.Workload.MicroBatches), Caps: make([]int64, len(search.Topology.Devices))}
	whole := func(seconds float64) int64 { return int64(math.Round(seconds * perSecond)) }
	stages := stagesOf(base)
	for chunk, stage := range stages {
		gpu := int(base.Map[stage.First])
		var took seconds
		var saved bytes
		for unit := stage.First; unit < stage.End; unit++ {
			took.add(unitTimes(table, search.Topology, gpu, unit))
			more := unitBytes(&table.Units[unit])
			saved.toInput, saved.toWeight, saved.between = saved.toInput+more.toInput, saved.toWeight+more.toWeight, saved.between+more.between
		}
		one := orders.Chunk{
			GPU: gpu, Forward: max(1, whole(took.forward)), Input: max(1, whole(took.input)), Weight: whole(took.weight),
			ToInput: saved.toInput, ToWeight: saved.toWeight, Between: saved.between,
		}
		if at.whole(chunk) {
			one.Joint, one.Input, one.Weight, one.Between = true, one.Input+one.Weight, 0, 0
		}
		if chunk+1 < len(stages) {
			next, bytes := int(base.Map[stage.End]), table.Units[stage.End-1].Work.Output
			if next == gpu {
				bytes = 0
			}
			one.Send, one.Back = whole(search.Topology.SendSeconds(gpu, next, bytes)), whole(search.Topology.SendSeconds(next, gpu, bytes))
		}
		out.Chunks = append(out.Chunks, one)
	}
	for gpu, least := range out.LeastCaps() {
		out.Caps[gpu] = search.spare(base, gpu) + least
	}
	return out, base
}

// whole reports a chunk whose backwards are whole. Nobody waits for the gradient of the first
// chunk's input, and a whole backward keeps less.
func (at form) whole(chunk int) bool { return !at.split || at.first && chunk == 0 }

// plain returns the schedule of a form that runs one micro-batch after the other.
func (search *search) plain(at form) costmodel.ScheduleKind {
	if kind, known := search.plains[at]; known {
		return kind
	}
	schedule := search.scheduleOf(at)
	rows := make([][]order.Action, schedule.Stages)
	for rank := range rows {
		for batch := range search.batches {
			for chunk := range schedule.Chunks {
				rows[rank] = append(rows[rank], order.Action{Kind: order.Forward, Chunk: chunk, MicroBatch: batch})
			}
			for chunk := schedule.Chunks - 1; chunk >= 0; chunk-- {
				if at.whole(int(schedule.Stage(int64(rank), chunk))) {
					rows[rank] = append(rows[rank], order.Action{Kind: order.Backward, Chunk: chunk, MicroBatch: batch})
					continue
				}
				rows[rank] = append(rows[rank], order.Action{Kind: order.Input, Chunk: chunk, MicroBatch: batch}, order.Action{Kind: order.Weight, Chunk: chunk, MicroBatch: batch})
			}
		}
	}
	search.plains[at] = order.Given(at.vee, rows)
	return search.plains[at]
}

// scheduleOf returns where the chunks of a form are.
func (question *Question) scheduleOf(at form) costmodel.Schedule {
	kind := costmodel.OneFOneB
	switch {
	case at.vee:
		kind = costmodel.ZBV
	case at.loops:
		kind = costmodel.Interleaved
	}
	return question.schedule(kind)
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

// starts are the published orders of the same chunks.
func (question *Question) starts(at form, base *Choice, problem *orders.Problem) (out []orders.Order) {
	for _, kind := range question.Kinds {
		if kind.Vee() != at.vee || kind.Loops() != at.loops {
			continue
		}
		schedule := costmodel.NewSchedule(&base.Table.Workload, int64(len(question.Topology.Devices)), question.schedule(kind).Chunks)
		schedule.Kind = kind
		rows := make(orders.Order, schedule.Stages)
		for gpu := range rows {
			for _, action := range order.Of(schedule, int64(gpu)) {
				chunk := int(schedule.Stage(int64(gpu), action.Chunk))
				switch joint := problem.Chunks[chunk].Joint; {
				case action.Kind == order.Forward:
					rows[gpu] = append(rows[gpu], orders.Pass{Kind: orders.Forward, Chunk: chunk})
				case action.Kind == order.Weight && !joint:
					rows[gpu] = append(rows[gpu], orders.Pass{Kind: orders.Weight, Chunk: chunk})
				case action.Kind != order.Weight:
					rows[gpu] = append(rows[gpu], orders.Pass{Kind: orders.Input, Chunk: chunk})
					if action.Kind == order.Backward && !joint {
						rows[gpu] = append(rows[gpu], orders.Pass{Kind: orders.Weight, Chunk: chunk})
					}
				}
			}
		}
		out = append(out, rows)
	}
	return out
}

// kindOf returns the schedule that names an order.
func (question *Question) kindOf(at form, problem *orders.Problem, found orders.Order) costmodel.ScheduleKind {
	rows, schedule := make([][]order.Action, len(found)), question.scheduleOf(at)
	for gpu, row := range found {
		next := map[orders.Pass]int64{}
		for _, pass := range row {
			_, chunk := schedule.Place(int64(pass.Chunk))
			action := order.Action{Kind: order.Forward, Chunk: chunk, MicroBatch: next[pass]}
			next[pass]++
			switch {
			case pass.Kind == orders.Weight:
				action.Kind = order.Weight
			case pass.Kind == orders.Input && !problem.Chunks[pass.Chunk].Joint:
				action.Kind = order.Input
			case pass.Kind == orders.Input:
				action.Kind = order.Backward
			}
			rows[gpu] = append(rows[gpu], action)
		}
	}
	return order.Given(at.vee, rows)
}
