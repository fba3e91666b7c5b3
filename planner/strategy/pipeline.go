package strategy

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
)

// pipelineEdit is a change of what a diffusion pipeline is asked for, and the
// settings that ask for it.
type pipelineEdit struct {
	set   []costmodel.Setting
	apply func(*phases.Workload)
}

// smallestPipeline is [Smallest] of a diffusion pipeline.
func (problem *search) smallestPipeline(ctx context.Context) []Change {
	var out []Change
	edits := pipelineEdits(problem.gpus())
	if problem.Diffusion.Workload.Train != nil {
		edits = trainingEdits(problem.Diffusion.Workload.Batch, max(1, problem.Diffusion.Workload.Train.MicroBatches))
	}
	for _, edit := range edits {
		changed, asked := *problem, *problem.Diffusion
		edit.apply(&asked.Workload)
		changed.Diffusion, changed.set = &asked, edit.set
		if change, ok := problem.fitting(ctx, &changed); ok {
			out = append(out, change)
		}
	}
	return out
}

// pipelineEdits are the changes that take memory away: on one GPU weights wait
// in the host's memory, on several they are sharded.
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

// trainingEdits are the changes that take memory away from a training program: in
// its own flags.
func trainingEdits(batch, parts int64) []pipelineEdit {
	train := func(change func(*costmodel.Workload)) func(*phases.Workload) {
		return func(work *phases.Workload) {
			changed := *work.Train
			change(&changed)
			work.Train, work.Batch = &changed, changed.Batch
		}
	}
	half := pipelineEdit{[]costmodel.Setting{costmodel.Set("precision", costmodel.BF16Mixed)}, train(func(work *costmodel.Workload) { work.Precision = costmodel.BF16Mixed })}
	again := pipelineEdit{[]costmodel.Setting{costmodel.Set("recompute", costmodel.RecomputeFull)}, train(func(work *costmodel.Workload) { work.Recompute = costmodel.RecomputeFull })}
	one := pipelineEdit{[]costmodel.Setting{costmodel.Set("batch", parts)}, train(func(work *costmodel.Workload) { work.Batch = parts })}
	latents := pipelineEdit{[]costmodel.Setting{costmodel.Set("cache_latents", true)}, func(work *phases.Workload) { work.CacheLatents = true }}
	out := []pipelineEdit{again, half, latents}
	if batch > parts {
		out = append(out, one)
	}
	both := func(parts ...pipelineEdit) (made pipelineEdit) {
		for _, part := range parts {
			made.set = append(made.set, part.set...)
		}
		made.apply = func(work *phases.Workload) {
			for _, part := range parts {
				part.apply(work)
			}
		}
		return made
	}
	return append(out, both(again, half), both(again, half, one), both(again, half, one, latents))
}
