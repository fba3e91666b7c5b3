package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// slowerForwards has no colon: one ends the flags of a printed change.
const slowerForwards = "slower, weights travel in every forward"

// nf4 is QLoRA's type of frozen weights (arXiv 2305.14314, section 3).
const nf4 = "nf4"

// ranks are how much a setting changes the job, the least first; others change no result. A change
// has the rank of its largest setting.
var ranks = map[string]int{
	"optimizer": 1, "lora_rank": 2, "quantize": 3, "offload": 4, "batch": 5, "seq": 6, "target_seq": 6,
	"strategy": 7, "gpus": 9, "gpu": 10,
}

// slowForward is the rank of units that travel to the GPUs in every forward.
const slowForward = 8

// intrusion is how much a change alters the job. A strategy that was open alters nothing.
func (problem *remedies) intrusion(change *Change) int {
	most := 0
	for _, setting := range change.Set {
		rank := ranks[setting.Field]
		switch {
		case setting.Field == "strategy" && problem.open():
			rank = 0
		case setting.Field == "batch" && change.Row.Workload.Batch > problem.sized().Batch: // a batch of all replicas
			rank = 0
		case setting.Field == "offload" && change.Row.Resolved.Mode != costmodel.Train:
			rank = slowForward
		}
		most = max(most, rank)
	}
	return most
}

// trains reports training by an engine that has other strategies: not by a program or devmap.
func (problem *search) trains() bool {
	_, program := estimate.Native(nil)
	runtime := problem.Workload.Runtime
	return problem.Workload.Mode == costmodel.Train && runtime != program && runtime != costmodel.Devmap
}

// lora trains adapters alone; if that is not enough, with more edits, and on quantised weights.
func (problem *remedies) lora(ctx context.Context) []Change {
	if alone := problem.singles(ctx, problem.adapters); len(alone) > 0 {
		return alone
	}
	var out []Change
	if len(problem.adapters) > 0 {
		out = problem.several(ctx, problem.search, slices.Concat(problem.adapters, problem.full))
	}
	return append(out, problem.quantised(ctx)...)
}

// quantised stores the frozen weights in four bits under adapters, with the necessary edits: as
// asked, else as a device map, else on more GPUs.
func (problem *remedies) quantised(ctx context.Context) []Change {
	if !problem.trains() || problem.Workload.Quantize != "" {
		return nil
	}
	quantise := edit{apply: func(w *costmodel.Workload) { w.Quantize = nf4 }}
	if problem.Workload.LoRARank == 0 {
		quantise = edit{note: freezes, apply: func(w *costmodel.Workload) {
			adapters(w)
			w.Quantize = nf4
		}}
	}
	recompute := edit{apply: func(w *costmodel.Workload) { w.Recompute = costmodel.RecomputeFull }}
	if out := problem.several(ctx, problem.edited(quantise), problem.full); out != nil {
		if problem.intrusion(&out[0]) > ranks["quantize"] { // less work too
			out = append(out, problem.moreGPUs(ctx, problem.edited(quantise, recompute))...)
		}
		return out
	}
	if strategy := problem.Workload.Strategy; !problem.open() && !strategy.Traits().Sequential {
		if out := problem.several(ctx, problem.withStrategy(costmodel.DeviceMap).edited(quantise), problem.full); out != nil {
			return out
		}
	}
	return problem.moreGPUs(ctx, problem.edited(quantise, recompute))
}

// onHost keeps optimizer states, and under zero3 parameters, in the host's memory (ZeRO-Offload,
// arXiv 2101.06840): under the stage that was asked for, else under zero3.
func (problem *remedies) onHost(ctx context.Context) []Change {
	workload := &problem.Workload
	if !problem.trains() || problem.open() || problem.fixed("offload") || problem.NoOffload || workload.DeepSpeed != nil || workload.HostStates {
		return nil
	}
	stages := []costmodel.Strategy{costmodel.Zero3}
	if traits := workload.Strategy.Traits(); traits.ZeroStage > 0 && !traits.Sharded {
		stages = append([]costmodel.Strategy{workload.Strategy}, stages...)
	}
	sized := problem.sized()
	all := slices.Concat(same(&sized), smallerBatches(sized.Batch), shorterSequences(problem.Graph, sized.Seq))
	for _, stage := range stages {
		changed := problem.withStrategy(stage)
		changed.Workload.HostStates = true
		changed.set = append(slices.Clone(problem.set), costmodel.Set("offload", "cpu"))
		if out := problem.several(ctx, changed, all); out != nil {
			out[0].Notes = append(slices.Clone(out[0].Notes), fmt.Sprintf("slower, %v of host memory", costmodel.Bytes(out[0].Row.HostBytes)))
			return out
		}
	}
	return nil
}

// sharded is FSDP with the necessary edits. The request is a map of the same training, DDP or a
// stage of ZeRO with whole parameters.
func (problem *remedies) sharded(ctx context.Context) []Change {
	traits := problem.Workload.Strategy.Traits()
	if !problem.trains() || problem.open() || traits.Sharded || traits.Staged || problem.gpus() < 2 {
		return nil
	}
	return problem.several(ctx, problem.withStrategy(costmodel.FSDP), problem.full)
}

// combined are changes of several kinds, if one kind is not enough: the smallest larger GPU with
// the necessary edits. Otherwise it is the fewest GPUs under FSDP (a device map in inference), with
// edits that train the same, and with adapters. A search under all strategies would take seconds.
func (problem *remedies) combined(ctx context.Context) []Change {
	for _, larger := range problem.larger() {
		if out := problem.several(ctx, larger, problem.full); out != nil {
			return out
		}
	}
	spread := costmodel.FSDP
	if problem.Workload.Mode != costmodel.Train {
		spread = costmodel.DeviceMap
	}
	sized, sharded := problem.sized(), problem.search
	if problem.Workload.Strategy != spread {
		sharded = problem.withStrategy(spread)
	}
	for _, edits := range [][]edit{nil, same(&sized), slices.Concat(same(&sized), problem.adapters)} {
		if out := problem.moreGPUs(ctx, sharded.edited(edits...)); out != nil {
			return out
		}
	}
	return nil
}

// moreAndSame are the fewest GPUs with edits that keep the results, as few as are necessary there.
func (problem *remedies) moreAndSame(ctx context.Context) []Change {
	sized := problem.sized()
	found := problem.moreGPUs(ctx, problem.edited(same(&sized)...))
	if found == nil {
		return nil
	}
	return problem.several(ctx, problem.on(len(found[0].To.Topology.Devices)), same(&sized))
}

// followChanges follows the pools of changes: each verdict is then of the change's plan.
func followChanges(ctx context.Context, changes []Change) []Change {
	for i := range changes {
		followPools(ctx, changes[i].To, &changes[i].Row)
	}
	return changes
}

// followPools replaces the ranges of a row's allocator pools by its own plan's. A row that does not
// fit is skipped.
func followPools(ctx context.Context, of *planner.Problem, row *Row) {
	problem := *of
	if ctx.Err() != nil || problem.Diffusion != nil || !row.Fits || row.Solution.Costs != nil && len(row.Solution.Costs.Stages) > 0 {
		return
	}
	problem.Workload, problem.Costs = row.Workload, nil
	if row.Solution.Costs != nil { // --recompute auto chose the blocks
		problem.Workload.Recompute = row.Solution.Costs.Workload.Recompute
	}
	resolved, err := problem.Resolved()
	if err != nil || resolved.Costs.Marks == nil {
		return
	}
	solution := *row.Solution
	solution.Devices = devicemap.Predict(resolved.Costs, resolved.Topology, solution.Map)
	solution.Verdict = instance.Worst(solution.Devices)
	row.Solution = &solution
}
