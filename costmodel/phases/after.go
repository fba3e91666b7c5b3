package phases

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// left is the GPUs' memory after a step of releasing a pipeline, in its process.
type left struct {
	Step string `json:"step"`
	// AllocatedBytes are tensors and workspaces, PoolBytes what torch's allocator
	// holds for them of the GPU, at least: both of each GPU.
	AllocatedBytes []int64 `json:"allocated_bytes"`
	PoolBytes      []int64 `json:"pool_bytes"`
	// RoomBytes is the memory for a next model in the same process. Before torch runs out of memory
	// it releases the pool's unused blocks (CUDACachingAllocator.cpp: release_cached_blocks).
	// Workspaces are reused (CUDABlas.cpp keeps one a handle and stream until the process ends).
	FreeBytes []int64 `json:"room_bytes"`
}

// processGroup is what destroy_process_group released on each of four H200s: NVML fell from 6463 to
// 5979 MiB, without tensors of torch (fixtures/measured/seeds.json, fsdp_unload; torch 2.11).
const processGroup = 484 << 20

// pool is what the allocator keeps for workspaces alone: a segment for cuBLAS, and one of 2 MiB for
// cuBLASLt (CUDACachingAllocator.cpp: get_allocation_size, kSmallBuffer).
func (run *residency) pool() int64 { return run.gpu.WorkspaceBytes + 2*ltWorkspace }

// resident is a GPU's memory between two runs: weights or shards, or nothing under offloading.
// maybe_free_model_hooks moves the last component back at the end of a call (pipeline_utils.py).
func (run *residency) resident(rank int64) int64 {
	if run.work.Offload != "" {
		return 0
	}
	used := run.memoryOf(nil, run.stageOf(rank))
	return used.Total() - run.workspaces()
}

func (run *residency) workspaces() int64 { return run.gpu.WorkspaceBytes + ltWorkspace }

// after are the steps of freeing memory, in order:
//   - The call has returned.
//   - The pipeline is deleted and collected.
//   - xDiT's cache manager is cleared, if it holds anything.
//   - The pool is emptied.
//   - The process group is destroyed, with its receive buffers.
func (run *running) after(phases []phasePlan) []left {
	type step struct {
		name  string
		bytes func(rank int64) int64
	}
	buffers := func(rank int64) int64 { _, used := run.cached(run.stageOf(rank)); return run.shards() + used }
	pinned := func(rank int64) int64 { return buffers(rank) + run.pinned(run.stageOf(rank)) }
	steps := []step{{"run", run.resident}, {"del and gc.collect", pinned}}
	if run.pinned(0) > 0 {
		steps = append(steps, step{"get_cache_manager().cache.clear()", buffers})
	}
	steps = append(steps, step{"torch.cuda.empty_cache", buffers})
	if run.work.gpus() > 1 {
		steps = append(steps, step{"destroy_process_group", func(int64) int64 { return run.shards() }})
	}
	var list []left
	for _, step := range steps {
		made := left{Step: step.name}
		for rank := range run.work.gpus() {
			used, pool := step.bytes(rank), run.pool()
			if emptied := len(list) >= len(steps)-1 || step.name == "torch.cuda.empty_cache"; emptied {
				pool += used
			} else {
				for _, phase := range phases {
					pool = max(pool, phase.Memory[rank].Total())
				}
			}
			made.AllocatedBytes = append(made.AllocatedBytes, used+run.workspaces())
			made.PoolBytes = append(made.PoolBytes, pool)
			made.FreeBytes = append(made.FreeBytes, run.gpu.Budget()-run.gpu.ContextBytes-used)
		}
		list = append(list, made)
	}
	return list
}

// pinned is what xDiT's process-wide cache manager holds of a stage after the pipeline is deleted.
// It lists the attentions that xDiT's own pipeline classes wrap, with their weights and keys
// (cache_manager.py, _CACHE_MGR; base_model.py, _register_cache).
func (run *residency) pinned(stage int64) int64 {
	wraps := run.wrapped || run.work.PipeFusion > 1 || run.class == "StableDiffusion3Pipeline" && run.work.Ulysses*run.work.Ring > 1
	if !wraps {
		return 0
	}
	keys, _ := run.cached(stage)
	graph, blocks := run.denoiser.Graph, blocksOf(run.denoiser.Graph)
	if run.work.PipeFusion > 1 {
		part := run.stage(stage)
		blocks = blocks[part.First:part.End]
	}
	for _, block := range blocks {
		for i := block.First; i < block.End; i++ {
			if _, ok := graph.Layers[i].Op.(modelgraph.Attention); !ok {
				continue
			}
			for _, tensor := range graph.Layers[i].Owned() {
				keys += tensor.Bytes
			}
		}
	}
	return keys
}

// shards is the bytes of shards and roots that FSDP1 never frees: views of a flat parameter that it
// lists itself. Measured: 4,924,226,560 bytes of a sharded Flux remained at the end. FSDP2 left
// nothing (fixtures/measured/xdit_h200.jsonl, "left").
func (run *residency) shards() int64 {
	if run.work.FullyShardDegree < 2 || run.lean {
		return 0
	}
	total := run.sharded(run.work.FullyShardDegree)
	for _, component := range run.all {
		if _, cut := run.cutWhole(component); cut {
			total += outside(component.Graph)
		}
	}
	return total
}

// next says how another model follows in the same process, and what wrongly keeps weights.
func (run *running) next(steps []left) []string {
	first, last := &steps[0], &steps[len(steps)-1]
	weights := first.AllocatedBytes[0] - run.workspaces()
	show := func(bytes int64) string { return costmodel.Bytes(bytes).String() }
	notes := []string{fmt.Sprintf("after the run %s of weights stay on GPU 0, and of another process's room the pool keeps %s or more: del every name of the pipeline and its components, gc.collect() (hooks of offloading and wrapped blocks point to each other), then torch.cuda.empty_cache(); %s of cuBLAS workspaces and the context (%s) stay until the process ends, and a next model uses both: it fits where its own peak is up to %s (%s while this one stays)",
		show(weights), show(first.PoolBytes[0]), show(run.workspaces()), show(run.gpu.ContextBytes), show(last.FreeBytes[0]), show(first.FreeBytes[0]))}
	if used := run.shards(); used > 0 {
		notes = append(notes, fmt.Sprintf("of sharded components %s stay on every GPU until the process ends, whatever is deleted: FSDP1's flat parameters and their views hold each other; with --memory_efficient_sharding (FSDP2) nothing does", show(used)))
	}
	if used := run.pinned(0); used > 0 {
		notes = append(notes, fmt.Sprintf("xDiT's cache manager lives as long as the process and lists attentions by itself: %s of their weights, and of keys and values that they keep, stay on GPU 0 after `del` until get_cache_manager().cache.clear()", show(used)))
	}
	if run.work.gpus() > 1 {
		notes = append(notes, fmt.Sprintf("NCCL's memory stays until torch.distributed.destroy_process_group(): %s a GPU came back of a group of four H200s; the context and what tensors are left stay", show(processGroup)))
	}
	return notes
}

// sharded are the shards of the components that are cut.
func (run *residency) sharded(degree int64) int64 {
	total := int64(0)
	for _, component := range run.all {
		if whole, cut := run.cutWhole(component); cut {
			total += whole / degree
		}
	}
	return total
}
