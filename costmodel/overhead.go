package costmodel

// Comm is memory of a GPU outside the engine's allocator, in bytes: the communication library's,
// and the contexts that replace a device's own.
type Comm struct {
	World int64 // on every GPU
	Peer  int64 // for each neighbour in a pipeline
	Ring  bool  // the last stage sends to the first too
	// Contexts maps a compute capability to two contexts: PyTorch's from the catalogue, and the engine's
	// measured one. The second replaces the first; a device with any other context keeps it.
	Contexts map[string][2]int64
}

// of is rank's part.
func (comm *Comm) of(rank int, world int64) int64 {
	peers := int64(2)
	switch {
	case world < 2:
		peers = 0
	case world == 2:
		peers = 1
	case !comm.Ring && (rank == 0 || int64(rank) == world-1):
		peers = 1
	}
	return comm.World + peers*comm.Peer
}

// stages is the number of a pipeline's stages, or of GPUs under other strategies.
func (table *Table) stages() int64 {
	if len(table.Stages) > 0 {
		return int64(len(table.Stages))
	}
	return table.Workload.World / int64(sizeOf(&table.Workload).gpus)
}

// PageTables are a GPU's bytes for the addresses of pinned host memory: 8 for each page of 4 KiB, from
// Pascal to Hopper. The sources are NV_MMU_VER2_PTE__SIZE (gp100/dev_mmu.h) and NV_MMU_VER3_PTE__SIZE
// (kern_gmmu_fmt_gh10x.c) of NVIDIA's open-gpu-kernel-modules. On an H200, 6.27 GiB took 12 MiB.
func PageTables(host int64) int64 { return host / 4096 * 8 }

// Overhead is the memory of a device that runs the model, outside the engine's allocator: the context
// with loaded kernels, and the communication library. index is the device's, or its stage's.
func (table *Table) Overhead(index int, device *Device) int64 {
	if table.Workload.Runtime == Devmap && device.Own != (own{}) {
		return device.Own.ContextBytes
	}
	context := device.ContextBytes
	if known, is := table.Comm.Contexts[device.ComputeCapability]; is && known[0] == context {
		context = known[1]
	}
	return context + table.Comm.of(index, table.stages())
}
