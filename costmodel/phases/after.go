package phases

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// left is what GPUs hold when a step of letting a pipeline go has been taken, in
// the process that ran it.
type left struct {
	Step string `json:"step"`
	// AllocatedBytes are tensors and workspaces, PoolBytes what torch's allocator
	// holds for them of the GPU, at least: both of each GPU.
	AllocatedBytes []int64 `json:"allocated_bytes"`
	PoolBytes      []int64 `json:"pool_bytes"`
	// RoomBytes is the peak that a next model may reach in the same process:
	// before it is out of memory, torch gives back what the pool holds unused
	// (CUDACachingAllocator.cpp: release_cached_blocks), and workspaces are used
	// again (CUDABlas.cpp keeps one a handle and stream until the process ends).
	RoomBytes []int64 `json:"room_bytes"`
}

// processGroup is what destroy_process_group gave back on each of four H200s:
// NVML's 6463 MiB fell to 5979, and nothing that torch had allocated did
// (fixtures/measured/seeds.json, fsdp_unload; torch 2.11). Measured.
const processGroup = 484 << 20

// pool is what the allocator keeps for the workspaces alone: cuBLAS' has a
// segment of its own, cuBLASLt's one of 2 MiB (CUDACachingAllocator.cpp:
// get_allocation_size, kSmallBuffer).
func (run *running) pool() int64 { return run.gpu.WorkspaceBytes + 2*ltWorkspace }

// resident is what stands on a GPU between two runs: under each mode of
// offloading nothing (pipeline_utils.py: maybe_free_model_hooks moves the last
// component back at the end of a call), else weights or shards.
func (run *running) resident(rank int64) int64 {
	if run.work.Offload != "" {
		return 0
	}
	held := run.held(nil, run.stageOf(rank))
	return held.Total() - run.workspaces()
}

func (run *running) workspaces() int64 { return run.gpu.WorkspaceBytes + ltWorkspace }

// after are the steps, in order: the call has returned; the pipeline is deleted
// and collected; the pool is emptied; the process group is destroyed.
func (run *running) after(phases []Phase) []left {
	steps := []string{"run", "del and gc.collect", "torch.cuda.empty_cache"}
	if run.work.gpus() > 1 {
		steps = append(steps, "destroy_process_group")
	}
	var list []left
	for i, step := range steps {
		made := left{Step: step}
		for rank := range run.work.gpus() {
			weights, pool := int64(0), run.pool()
			if i == 0 {
				weights = run.resident(rank)
			}
			if i < 2 {
				for _, phase := range phases {
					pool = max(pool, phase.Memory[rank].Total())
				}
			}
			made.AllocatedBytes = append(made.AllocatedBytes, weights+run.workspaces())
			made.PoolBytes = append(made.PoolBytes, pool)
			made.RoomBytes = append(made.RoomBytes, run.gpu.Budget()-run.gpu.ContextBytes-weights)
		}
		list = append(list, made)
	}
	return list
}

// next tells how another model follows in the same process, and what keeps
// weights where it should not.
func (run *running) next(steps []left) []string {
	first, last := &steps[0], &steps[len(steps)-1]
	weights := first.AllocatedBytes[0] - run.workspaces()
	show := func(bytes int64) string { return costmodel.Bytes(bytes).String() }
	notes := []string{fmt.Sprintf("after the run %s of weights stay on GPU 0, and of another process's room the pool keeps %s or more: del every name of the pipeline and its components, gc.collect() (hooks of offloading and wrapped blocks point to each other), then torch.cuda.empty_cache(); %s of cuBLAS workspaces and the context (%s) stay until the process ends, and a next model uses both: it fits where its own peak is up to %s (%s while this one stays)",
		show(weights), show(first.PoolBytes[0]), show(run.workspaces()), show(run.gpu.ContextBytes), show(last.RoomBytes[0]), show(first.RoomBytes[0]))}
	if degree := run.work.FullyShardDegree; degree > 1 {
		notes = append(notes, fmt.Sprintf("after `del` %s of shards stay on every GPU while one wrapped block is still referenced (FSDP2's states list each other): del it too, then gc.collect()", show(run.sharded(degree))))
	}
	if run.work.Ulysses*run.work.Ring*run.work.PipeFusion > 1 {
		notes = append(notes, fmt.Sprintf("xDiT's cache manager lives as long as the process and may list every attention module by itself: %s of their weights, and the keys and values that they keep, stay after `del` until get_cache_manager().cache.clear()", show(run.attention())))
	}
	if run.work.gpus() > 1 {
		notes = append(notes, fmt.Sprintf("NCCL's memory stays until torch.distributed.destroy_process_group(): %s a GPU came back of a group of four H200s; the context and what tensors are left stay", show(processGroup)))
	}
	return notes
}

// sharded are the shards of the components that are cut.
func (run *running) sharded(degree int64) int64 {
	total := int64(0)
	for _, component := range run.all {
		if whole, cut := run.cutWhole(component); cut {
			total += whole / degree
		}
	}
	return total
}

// attention are the weights of the denoiser's attentions on the first stage.
func (run *running) attention() int64 {
	total := int64(0)
	for i := range run.denoiser.Graph.Layers {
		layer := &run.denoiser.Graph.Layers[i]
		if _, ok := layer.Op.(modelgraph.Attention); ok {
			for _, tensor := range layer.Owned() {
				total += tensor.Bytes()
			}
		}
	}
	return total / run.work.PipeFusion / run.work.FullyShardDegree
}
