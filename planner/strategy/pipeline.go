package strategy

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
)

// pipelineEdit is a change of a diffusion pipeline's request, and its settings.
type pipelineEdit struct {
	set   []costmodel.Setting
	apply func(*phases.Workload)
}

// smallestPipeline is [Smallest] of a diffusion pipeline.
func (problem *search) smallestPipeline(ctx context.Context) []Change {
	if problem.Diffusion.Workload.Train != nil {
		return problem.smallestTraining(ctx)
	}
	var out []Change
	for _, edit := range pipelineEdits(problem.gpus()) {
		changed, asked := *problem, *problem.Diffusion
		edit.apply(&asked.Workload)
		changed.Diffusion, changed.set = &asked, edit.set
		out = append(out, problem.fitting(ctx, &changed)...)
	}
	return out
}

// pipelineEdits are the changes that take memory away: on one GPU weights wait in the host's
// memory, on several they are sharded.
func pipelineEdits(gpus int64) []pipelineEdit {
	tiles := pipelineEdit{[]costmodel.Setting{costmodel.Set("vae_tiling", true)}, func(work *phases.Workload) { work.VAETiling = true }}
	var out []pipelineEdit
	add := func(setting costmodel.Setting, apply func(*phases.Workload)) {
		out = append(out, pipelineEdit{[]costmodel.Setting{setting}, apply}, pipelineEdit{
			[]costmodel.Setting{setting, tiles.set[0]},
			func(work *phases.Workload) { apply(work); tiles.apply(work) },
		})
	}
	if gpus > 1 {
		add(costmodel.Set("fully_shard_degree", gpus), func(work *phases.Workload) { work.FullyShardDegree = gpus })
		return out
	}
	out = append(out, tiles)
	for _, mode := range []string{"model", "group", "sequential"} {
		add(costmodel.Set("offload", mode), func(work *phases.Workload) { work.Offload = mode })
	}
	return out
}

// smallestTraining is [Smallest] of a program that trains adapters of a pipeline: its own flags,
// each alone and then together, and larger GPUs.
func (problem *search) smallestTraining(ctx context.Context) []Change {
	edits := trainingEdits(&problem.Diffusion.Workload)
	out := problem.pipelines(ctx, problem, edits)
	own := len(out) > 0
	training := *problem
	training.Workload.Mode = costmodel.Train // for the reserve of its GPUs
	for _, larger := range training.larger() {
		larger.Workload.Mode = problem.Workload.Mode
		if fits := problem.fitting(ctx, larger); fits != nil {
			return append(out, fits...)
		}
		if !own {
			if out = problem.pipelines(ctx, larger, edits); len(out) > 0 {
				return out
			}
		}
	}
	return out
}

// pipelines are the edits of a changed problem that fit. An edit with all settings of an earlier
// one is left out, unless only the earlier one is tight.
func (problem *search) pipelines(ctx context.Context, on *search, edits []pipelineEdit) []Change {
	var out []Change
	for _, edit := range edits {
		changed, asked := *on, *on.Diffusion
		edit.apply(&asked.Workload)
		changed.Diffusion, changed.set = &asked, slices.Concat(on.set, edit.set)
		fits := problem.fitting(ctx, &changed)
		if len(fits) > 0 && !slices.ContainsFunc(out, func(earlier Change) bool { return fits[0].repeats(&earlier) }) {
			out = append(out, fits...)
		}
	}
	return out
}

// repeats reports a change that has all of an earlier one's settings, and no better verdict.
func (change *Change) repeats(earlier *Change) bool {
	return (earlier.Row.Solution.Verdict == "fits" || change.Row.Solution.Verdict != "fits") &&
		!slices.ContainsFunc(earlier.Set, func(setting costmodel.Setting) bool { return !slices.Contains(change.Set, setting) })
}

// trainingEdits are the memory-saving changes of a training program: its flags that are not set
// yet, each alone and then with the previous ones.
func trainingEdits(asked *phases.Workload) []pipelineEdit {
	parts := max(1, asked.Train.MicroBatches)
	train := func(change func(*costmodel.Workload)) func(*phases.Workload) {
		return func(work *phases.Workload) {
			changed := *work.Train
			change(&changed)
			work.Train, work.Batch = &changed, changed.Batch
		}
	}
	var out []pipelineEdit
	add := func(when bool, setting costmodel.Setting, apply func(*phases.Workload)) {
		if when {
			out = append(out, pipelineEdit{[]costmodel.Setting{setting}, apply})
		}
	}
	add(asked.Train.Recompute != costmodel.RecomputeFull, costmodel.Set("recompute", costmodel.RecomputeFull), train(func(work *costmodel.Workload) { work.Recompute = costmodel.RecomputeFull }))
	add(asked.Train.Precision == costmodel.FP32True, costmodel.Set("precision", costmodel.BF16Mixed), train(func(work *costmodel.Workload) { work.Precision = costmodel.BF16Mixed }))
	add(asked.Batch > parts, costmodel.Set("batch", parts), train(func(work *costmodel.Workload) { work.Batch = parts }))
	add(!asked.CacheLatents, costmodel.Set("cache_latents", true), func(work *phases.Workload) { work.CacheLatents = true })
	for alone, count := slices.Clone(out), 2; count <= len(alone); count++ {
		var set []costmodel.Setting
		for _, edit := range alone[:count] {
			set = append(set, edit.set...)
		}
		out = append(out, pipelineEdit{set, func(work *phases.Workload) {
			for _, edit := range alone[:count] {
				edit.apply(work)
			}
		}})
	}
	return out
}
