package costmodel

// Comm is what is held on a GPU outside the engine's allocator, in bytes: by the
// communication library, and by another context than the device says.
type Comm struct {
	World int64 // on every GPU
	Peer  int64 // for each neighbour in a pipeline
	Ring  bool  // the last stage sends to the first too
	// Contexts are, by compute capability, the context that the catalogue has,
	// which is PyTorch's, and the engine's own, which was measured on such GPUs
	// and replaces it. A device that says another stays with that.
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

// stages is how many ranks a pipeline has (a rank may be several GPUs); under
// other strategies that of all GPUs.
func (table *Table) stages() int64 {
	if len(table.Stages) > 0 {
		return int64(len(table.Stages))
	}
	return table.Workload.World / int64(sizeOf(&table.Workload).gpus)
}

// Overhead is what the device of this index (of a pipeline, its stage), which runs the model, holds outside the engine's
// allocator: the context with loaded kernels, and the communication library.
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
