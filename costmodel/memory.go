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
func (m Memory) Total() int64 {
	return m.Params + m.Grads + m.OptimizerState + m.Activations + m.KVCache + m.Workspace + m.CommBuffers
}

// further is m after so many more steps like that from before to m.
func (m Memory) further(before Memory, times int64) Memory {
	return Memory{
		Params:         m.Params + times*(m.Params-before.Params),
		Grads:          m.Grads + times*(m.Grads-before.Grads),
		OptimizerState: m.OptimizerState + times*(m.OptimizerState-before.OptimizerState),
		Activations:    m.Activations + times*(m.Activations-before.Activations),
		KVCache:        m.KVCache + times*(m.KVCache-before.KVCache),
		Workspace:      m.Workspace + times*(m.Workspace-before.Workspace),
		CommBuffers:    m.CommBuffers + times*(m.CommBuffers-before.CommBuffers),
	}
}

// Origin says where a number comes from.
type Origin string

// The origins, strongest last.
const (
	Analytic Origin = "analytic" // from the op's dimensions, by a formula
	Declared Origin = "declared" // from the model file
	Measured Origin = "measured" // from a profile
)
