package phases

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// cut takes away what xDiT leaves to other GPUs of the denoiser, and of encoders
// where weights are sharded: a GPU keeps a shard, and gathers the block that runs
// and the next; what is in no block is gathered from the first forward on.
func (run *running) cut(memory *costmodel.Memory, component *diffusers.Component, stage int64) {
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
	memory.KVCache, memory.CommBuffers = run.kept(stage)
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
		case run.lean && sharded == component:
			memory.CommBuffers += ahead(sharded.Graph)
		case run.lean: // FSDP2 is told to shard its root again
		case sharded == component:
			memory.CommBuffers += gathered(sharded.Graph)
		default: // FSDP1 frees blocks after a forward, and not the root
			memory.CommBuffers += outside(sharded.Graph)
		}
	}
}

// cutWhole is the size of a component, and whether its weights are sharded where
// any are: all but CLIPs and the autoencoder (xfuser/model_executor/models/
// runner_models: fsdp_strategy).
func (run *running) cutWhole(component *diffusers.Component) (int64, bool) {
	whole := forward.Bytes(component.Graph)
	return whole, component != run.decoder && !strings.HasPrefix(component.Graph.Class, "CLIP")
}

// outside is what of a component is in no block: FSDP's root, which stays whole
// from its first forward on (torch/distributed/fsdp/_runtime_utils.py:
// _post_forward_reshard).
func outside(graph *modelgraph.Graph) int64 {
	rest := forward.Bytes(graph)
	for _, block := range blocksOf(graph) {
		rest -= unitBytes(graph, block)
	}
	return rest
}

// gathered is what of a sharded component is whole at a time: two blocks, and
// what is in none.
func gathered(graph *modelgraph.Graph) int64 {
	var sizes []int64
	for _, block := range blocksOf(graph) {
		sizes = append(sizes, unitBytes(graph, block))
	}
	rest := outside(graph)
	slices.Sort(sizes)
	for _, size := range sizes[max(0, len(sizes)-2):] {
		rest += size
	}
	return rest
}

// ahead is what of a component is whole at a time under --memory_efficient_sharding:
// FSDP2 gathers a block, the next two and what is in none (xfuser/core/
// distributed/sharding.py: set_modules_to_forward_prefetch).
func ahead(graph *modelgraph.Graph) int64 {
	blocks, most := blocksOf(graph), int64(0)
	for i := range blocks {
		held := int64(0)
		for _, block := range blocks[i:min(i+3, len(blocks))] {
			held += unitBytes(graph, block)
		}
		most = max(most, held)
	}
	return most + outside(graph)
}
