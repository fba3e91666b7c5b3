package planner

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
)

// hostSearch chooses the blocks whose activations wait in host memory, together with the order, the
// cuts and the recomputed blocks of [solveSchedule]. Lists that the link moves without waiting
// (PipeOffload, arXiv 2503.01328) keep the step as short as with all activations on the GPUs. All
// blocks leave if nothing else fits, or if waiting is shorter than recomputation.
type hostSearch struct {
	*Problem
	budgets *costmodel.Topology
	blocks  []int
	free    *Problem // all blocks leave
}

// solveOffloaded finds the shortest step that fits, with no block, all blocks, or every k-th, from the
// smallest k on whose time is enough for the link. Blocks return that do not have to leave.
func solveOffloaded(ctx context.Context, problem *Problem, budgets *costmodel.Topology, settings Settings) (best *Solution, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(settings.TimeLimit, DefaultTimeLimit))
	defer cancel()
	search := &hostSearch{Problem: problem, budgets: budgets, blocks: blocksOf(problem.Graph)}
	if search.free, err = search.under(problem.Costs.Workload, slices.Repeat([]bool{true}, len(search.blocks))); err != nil {
		return nil, err
	}
	search.free.Topology = budgets
	best, err = search.shortest(ctx)
	if err == nil && best.Status != Optimal && ctx.Err() != nil {
		best.Status = LimitReached
	}
	return best, err
}

// shortest is the shortest step of all lists, or the list that is nearest to fitting on the GPUs.
func (search *hostSearch) shortest(ctx context.Context) (best *Solution, err error) {
	var nearest *InfeasibleError
	host, least := "", math.Inf(1) // what the host lacks for a list that fits on the GPUs; the shortest step
	for _, moved := range search.lists() {
		if best != nil && ctx.Err() != nil {
			break
		}
		found, err := search.solve(ctx, moved)
		large, _ := err.(*InfeasibleError) //nolint:errorlint // solve returns it as it is
		switch {
		case err != nil && large == nil:
			return nil, err
		case err == nil && found.Value < least:
			least = found.Value
			if best, err = search.certified(found); err != nil || best.Status == Optimal {
				return best, err
			}
		case err == nil:
		case large.hostLacks > 0:
			host = large.host()
		case nearest == nil || large.Best.LargestShare < nearest.Best.LargestShare:
			nearest = large
		}
	}
	if best == nil {
		nearest.Offload, best, err = host, nearest.Best, nearest
	}
	return best, err
}

// lists are the lists of blocks to try: none, every k-th block, and all.
func (search *hostSearch) lists() [][]bool {
	first, count := search.spacing(), len(search.blocks)
	out := [][]bool{make([]bool, count), slices.Repeat([]bool{true}, count)}
	spacings := []int{first, first + 1, 2 * first}
	if first > 2 && search.Costs.Workload.Schedule != costmodel.AutoSchedule { // quick: more blocks than the link moves in time
		spacings = append(spacings, first-1)
	}
	for _, spacing := range spacings {
		moved := make([]bool, count)
		for block := 0; block+1 < count; block += spacing { // the last block's backward follows at once
			moved[block] = true
		}
		out = append(out, moved)
	}
	return out
}

// under returns the problem under a workload with these blocks in host memory.
func (search *hostSearch) under(workload costmodel.Workload, moved []bool) (*Problem, error) {
	workload.OffloadActivations = ""
	if slices.Contains(moved, true) {
		workload.OffloadActivations = costmodel.RecomputeOf(moved)
	}
	resolved, err := estimate.Resolve(search.Graph, workload)
	if err != nil {
		return nil, err
	}
	out := *search.Problem
	out.Costs, err = estimate.Table(search.Graph, resolved)
	return &out, err
}

// solve solves the problem with these blocks in host memory, or fewer of them.
func (search *hostSearch) solve(ctx context.Context, moved []bool) (*Solution, error) {
	problem, err := search.under(search.Costs.Workload, moved)
	if err != nil {
		return nil, err
	}
	found, err := solveSchedule(ctx, problem, search.budgets, halfTime(ctx))
	if err != nil || problem.Costs.Workload.OffloadActivations == "" {
		return found, err
	}
	if found, err = search.fewest(ctx, found); err != nil {
		return nil, err
	}
	err = found.hosted()
	return found, err
}

// spacing is the smallest number of blocks in whose forwards and in whose backwards one of them moves,
// on any GPU.
func (search *hostSearch) spacing() int {
	times, most := steptime.TicksOf(search.free.Costs, search.budgets), 1.
	for device := range search.budgets.Devices {
		for _, unit := range search.blocks {
			if took := times.Unit(unit, device); took.Store > 0 {
				most = max(most, float64(took.Store)/float64(took.Forward), float64(took.Fetch)/float64(took.Backward+took.Learn))
			}
		}
	}
	return int(math.Ceil(min(most, float64(len(search.blocks)+1))))
}

// fewest takes blocks back onto the GPUs, from the last one on, as long as all GPUs fit and the step
// is no longer. The order, the cuts and the recomputed blocks stay. It ends early if the context does.
func (search *hostSearch) fewest(ctx context.Context, best *Solution) (*Solution, error) {
	moved, err := best.Costs.Workload.Offloads(len(search.blocks))
	if err != nil {
		return nil, err
	}
	for block := len(moved) - 1; block >= 0 && ctx.Err() == nil; block-- {
		if !moved[block] {
			continue
		}
		moved[block] = false
		next, err := search.under(best.Costs.Workload, moved)
		if err != nil {
			return nil, err
		}
		step := devicemap.StepSeconds(next.Costs, search.budgets, best.Map)
		devices := devicemap.Predict(next.Costs, search.budgets, best.Map)
		fits := !slices.ContainsFunc(devices, func(device devicemap.Prediction) bool { return device.Share > 1 })
		if !fits || step == nil || *step > best.Value {
			moved[block] = true
			continue
		}
		again := *best
		again.Costs, again.Value, again.Devices = next.Costs, *step, devices
		best = &again
	}
	return best, nil
}

// certified certifies a choice against all choices of blocks.
func (search *hostSearch) certified(best *Solution) (*Solution, error) {
	question, err := scheduleQuestion(context.Background(), search.free, 0)
	if err != nil {
		return nil, err
	}
	choice := &scheduletime.Choice{Table: best.Costs, Map: best.Map, Step: best.Value, Tried: best.Probes}
	return proved(search.Problem, question, choice, best.Status == LimitReached)
}

// copying adds the rates of copies between GPUs and host, if activations are offloaded.
func (problem Problem) copying() (Problem, error) {
	text := problem.Costs.Workload.OffloadActivations
	if text == "" {
		return problem, nil
	}
	topology, err := catalogue.WithCopies(problem.Topology)
	if err != nil {
		return problem, costmodel.Refuse(costmodel.Set("offload_activations", text), "%v", err)
	}
	problem.Topology = topology
	return problem, nil
}

// hosted refuses a plan whose activations take more of the host's memory than the topology gives. Its
// error is an [*InfeasibleError].
func (solution *Solution) hosted() error {
	if solution.Topology == nil {
		return nil
	}
	need, lacks := devicemap.HostMemory(solution.Devices, solution.Topology)
	if lacks == 0 {
		return nil
	}
	large := solution.tooLarge()
	large.hostNeeds, large.hostLacks, large.Proved = need, lacks, false
	return large
}
