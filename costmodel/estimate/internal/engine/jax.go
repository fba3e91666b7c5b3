package engine

import (
	"fmt"
)

// jax is the runtime of OpenPI, which is not built yet.
const jax string = "jax"

// JAXFraction is the part of a GPU that JAX takes for its pool unless
// XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise: of the memory that CUDA
// reports in total, which is capacity less what the driver keeps (XLA,
// xla/pjrt/gpu/gpu_helpers.cc, CreateBFCAllocator: total_memory *
// memory_fraction; of the total, not of what is free, since jaxlib 0.4.1). NVML
// shows the pool and a context beside it, not what the program uses.
const JAXFraction = 0.75

// Advice is what is known of an engine that is not built, for those who ask
// for it; empty of others.
func Advice(runtime string) string {
	if runtime != jax {
		return ""
	}
	return fmt.Sprintf("JAX preallocates %.0f%% of a GPU when it first uses it, and every visible GPU gets a context: "+
		"set XLA_PYTHON_CLIENT_MEM_FRACTION (0.9 for training alone) or XLA_PYTHON_CLIENT_PREALLOCATE=false; "+
		"OpenPI's fsdp_devices cuts parameters but its mesh takes all visible GPUs: CUDA_VISIBLE_DEVICES limits them", 100*JAXFraction)
}
