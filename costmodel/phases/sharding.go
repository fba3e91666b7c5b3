package phases

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// cut removes other GPUs' parts of the denoiser under xDiT, and of encoders if weights are sharded.
// A GPU keeps its shard, and gathers the running block and the next. All outside blocks is gathered
// from the first forward on.
func (run *residency) cut(memory *costmodel.Memory, component *diffusers.Component, stage int64) {
	if run.denoiser == nil {
		return
	}
	graph := run.denoiser.Graph
	blocks := blocksOf(graph)
	if run.work.PipeFusion > 1 {
		part := run.stage(stage)
		for i, block := range blocks {
			if i < part.First || i >= part.End {
				memory.Params -= unitBytes(graph, block)
			}
		}
	}
	memory.KVCache, memory.CommBuffers = run.cached(stage)
	degree := run.work.FullyShardDegree
	if degree < 2 {
		return
	}
	for _, sharded := range run.all {
		whole, cut := run.cutWhole(sharded)
		if !cut {
			continue
		}
		memory.Params -= whole - whole/degree
		switch {
		case sharded == component:
			memory.CommBuffers += outside(sharded.Graph) + slices.Max(append(run.gathered(sharded.Graph), 0))
		case !run.lean: // FSDP1 frees blocks after a forward, and not the root; FSDP2 is asked to free it
			memory.CommBuffers += outside(sharded.Graph)
		}
	}
}

// cutWhole is the size of a component, and whether its weights are sharded if any are: all but
// CLIPs and the autoencoder (xfuser/model_executor/models/ runner_models: fsdp_strategy).
func (run *residency) cutWhole(component *diffusers.Component) (int64, bool) {
	whole := forward.Bytes(component.Graph)
	return whole, component != run.decoder && !strings.HasPrefix(component.Graph.Class, "CLIP")
}

// outside is the bytes of a component outside blocks: FSDP's root, which stays whole from its first
// forward on (torch/distributed/fsdp/_runtime_utils.py: _post_forward_reshard).
func outside(graph *modelgraph.Graph) int64 {
	rest := forward.Bytes(graph)
	for _, block := range blocksOf(graph) {
		rest -= unitBytes(graph, block)
	}
	return rest
}

// gathered is the whole part of a sharded component while each block runs, without what is outside
// blocks. FSDP1 gathers the block and the next. --memory_efficient_sharding selects FSDP2, which
// gathers two ahead (sharding.py: set_modules_to_forward_prefetch). Its copy-out source stays until
// the next block's (_fsdp_param_group.py: wait_for_unshard, all_gather_state), except the first.
func (run *residency) gathered(graph *modelgraph.Graph) []int64 {
	var sizes, whole []int64
	for _, block := range blocksOf(graph) {
		sizes = append(sizes, unitBytes(graph, block))
	}
	ahead := 2
	if run.lean {
		ahead = 3
	}
	for i := range sizes {
		used := int64(0)
		for _, size := range sizes[i:min(i+ahead, len(sizes))] {
			used += size
		}
		if run.lean && i > 0 {
			used += sizes[i]
		}
		whole = append(whole, used)
	}
	return whole
}

// met is the denoiser's peak above its largest gathered part: the largest sum of a block's own
// moment and the part that is whole meanwhile.
func (run *residency) met(cost forward.Cost) int64 {
	whole := run.gathered(run.denoiser.Graph)
	if run.work.FullyShardDegree < 2 || len(whole) != len(cost.Blocks) {
		return cost.PeakBytes
	}
	most := int64(0)
	if run.lean { // the first block and its copy, and the root's copy-out source (prev_all_gather_state)
		most = 2*unitBytes(run.denoiser.Graph, blocksOf(run.denoiser.Graph)[0]) + outside(run.denoiser.Graph)
	}
	for i, moment := range cost.Blocks {
		most = max(most, whole[i]+moment)
	}
	return most - slices.Max(whole)
}
