package costmodel

// Comm is what the communication library holds on a GPU outside the engine's
// allocator, in bytes.
type Comm struct {
	World int64 // on every GPU
	Peer  int64 // for each neighbour in a pipeline
	Ring  bool  // the last stage sends to the first too
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

// Overhead is what the device of this index, which runs the model, holds outside the engine's
// allocator: the context with loaded kernels, and the communication library.
func (table *Table) Overhead(index int, device *Device) int64 {
	if table.Workload.Runtime == Devmap && device.Own != (own{}) {
		return device.Own.ContextBytes
	}
	return device.ContextBytes + table.Comm.of(index, table.Workload.World)
}
