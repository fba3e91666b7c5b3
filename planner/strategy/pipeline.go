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
	for _, edit := range pipelineEdits(problem.gpus()) {
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
