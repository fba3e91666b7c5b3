package phases

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/forward"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// ltWorkspace is cuBLASLt's, which torch allocates in addition to cuBLAS' own
// (CUDABlas.cpp: _getWorkspaceSize; 33 MiB in all on an H200).
const ltWorkspace = 1 << 20

// stored is what components keep on a GPU, and how much of it the allocator gives beyond their tensors.
func stored(graphs ...*modelgraph.Graph) (tensors, rounding int64) {
	for _, graph := range graphs {
		tensors += forward.Bytes(graph)
	}
	return tensors, forward.Resident(graphs...) - tensors
}

// blocksOf are a denoiser's wrap units that are members of lists. xDiT splits and wraps only those
// (base_transformer.py, _split_transformer_blocks; xfuser/core/distributed/sharding.py). A map
// keeps further modules whole, such as time_text_embed.
func blocksOf(graph *modelgraph.Graph) []*modelgraph.Unit {
	var blocks []*modelgraph.Unit
	for i := range graph.Units {
		unit := &graph.Units[i]
		if unit.End == unit.First {
			continue
		}
		name := graph.Layers[unit.First].Unit
		if _, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:]); err == nil {
			blocks = append(blocks, unit)
		}
	}
	return blocks
}

// unitBytes is the size of a unit's parameters and buffers.
func unitBytes(graph *modelgraph.Graph, unit *modelgraph.Unit) int64 {
	total := int64(0)
	for i := unit.First; i < unit.End; i++ {
		for _, tensor := range graph.Layers[i].Owned() {
			total += tensor.Bytes
		}
	}
	return total
}

// memoryOf is the resident memory of a GPU while a component runs: everything, the component alone,
// or a part of it, with the buffers for gathered shards.
func (run *residency) memoryOf(component *diffusers.Component, stage int64) costmodel.Memory {
	memory := costmodel.Memory{Workspace: run.workspaces()}
	switch run.work.Offload {
	case "sequential": // the walk brings weights itself
		return memory
	case "model":
		tensors, rounding := stored(component.Graph)
		memory.Params, memory.Workspace = tensors, memory.Workspace+rounding
		return memory
	case "group":
		memory.Params = grouped(component)
		return memory
	}
	var graphs []*modelgraph.Graph
	for _, other := range run.all {
		graphs = append(graphs, other.Graph)
	}
	tensors, rounding := stored(graphs...)
	memory.Params, memory.Workspace = tensors, memory.Workspace+rounding
	run.cut(&memory, component, stage)
	return memory
}

// grouped is the bytes of a component that stay on the GPU under group offloading with one block in a
// group: all bytes outside the lists of blocks. Lists are among the component's own children, in some
// autoencoders among the decoder's (hooks/group_offloading.py, _apply_group_offloading_block_level).
func grouped(component *diffusers.Component) int64 {
	graph := component.Graph
	rest := forward.Bytes(graph)
	switch {
	case component.Class == "AutoencoderKL" || component.Class == "AutoencoderKLWan":
		return decoderGroups(graph)
	case component.Library != "diffusers" || component.Name == "vae":
		return rest
	}
	for _, list := range []string{"transformer_blocks.", "single_transformer_blocks.", "blocks.", "down_blocks.", "up_blocks."} {
		for i := range graph.Layers {
			if strings.HasPrefix(graph.Layers[i].Name, list) {
				for _, tensor := range graph.Layers[i].Owned() {
					rest -= tensor.Bytes
				}
			}
		}
	}
	return rest
}

// decoderGroups is a decoder's memory at its peak: all outside blocks, and the last block but one,
// which makes the largest picture of many channels.
func decoderGroups(graph *modelgraph.Graph) int64 {
	const list = "decoder.up_blocks."
	total, blocks := int64(0), map[string]int64{}
	last := 0
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		index, inside := strings.CutPrefix(layer.Name, list)
		for _, tensor := range layer.Owned() {
			switch {
			case inside:
				index, _, _ = strings.Cut(index, ".")
				blocks[index] += tensor.Bytes
				last = len(blocks) - 1
			case strings.HasPrefix(layer.Name, "decoder."):
				total += tensor.Bytes
			}
		}
	}
	return total + blocks[strconv.Itoa(max(0, last-1))]
}
