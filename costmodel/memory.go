package costmodel

// Memory is bytes by category, as a plan reports them.
type Memory struct {
	Params         int64 // weights and the model's buffers
	Grads          int64
	OptimizerState int64
	Activations    int64 // saved for backward, transients, logits
	KVCache        int64
	Workspace      int64 // scratch of libraries, from the engine's allocator, and its rounding of parameters
	CommBuffers    int64
}

// Total is the sum.
func (memory Memory) Total() int64 {
	return memory.Params + memory.Grads + memory.OptimizerState + memory.Activations + memory.KVCache + memory.Workspace + memory.CommBuffers
}
