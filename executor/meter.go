package executor

// Meter is a [Machine] on GPUs, whose driver tells what they hold: of all
// processes, arenas and everything else.
type Meter interface {
	// Measured are the GPUs in use, once more after Close.
	Measured() []GPUResult
}

// GPUResult is what a GPU held at the moments of a run, in bytes, as its driver
// says (NVML's used, without what the driver reserves). It is plain data: a worker
// sends it on.
type GPUResult struct {
	GPU        int // by the driver's order
	UUID, Name string
	Devices    []int32 // of the plan, that are on it
	Total      int64
	// Arenas is what of it is mapped for arenas, in whole granules.
	Arenas int64
	// Before the process had a context there; with the context; with arenas,
	// kernels and libraries that are warm; and behind Close.
	Before, Context, Ready, After int64
	// Fences is how many fences of steps were passed, FenceLow and FenceHigh the
	// least and the most that the GPU held at one; 0 where none was.
	Fences              int64
	FenceLow, FenceHigh int64
	// Tables is what the GPU's page tables take for copies that are kept in the host's
	// memory, from Ready on; TablesAfter with After.
	Tables, TablesAfter int64
	// Moved says what other processes came, went or changed by between two of
	// these moments; empty: nothing is known to have.
	Moved string
	// Unmeasured is why nothing of this is known; empty: it is.
	Unmeasured string
}
