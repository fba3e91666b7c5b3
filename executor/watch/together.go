package watch

// Peak is the most that processes held together: it lies between both, which are
// equal where that is known.
type Peak struct{ Low, High int64 }

// OnGPU is what the allocators of the processes on a GPU say of it themselves.
type OnGPU struct {
	Processes           int
	Allocated, Reserved Peak
	OutOfMemory         int64 // how often an allocation failed for good
	Killed              int   // processes that had no time to say their last
}
