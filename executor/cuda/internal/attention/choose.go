package attention

import "fmt"

// far is the reach from which on a forward kernel with larger blocks of queries is faster. Both
// compute the same bits.
const far = 2048

// Choose returns the kernel for heads of dim values. A query sees up to reach keys. Set aligned if
// addresses and strides of all but lse and delta are multiples of 16 bytes. Set capped if scores have
// a soft cap, and hopper if the GPU's compute capability is 9.0 and its driver takes PTX ISA 8.1. The
// choice depends on nothing else, so that devices and micro-batches compute the same bits.
func (table *Table) Choose(name, dtype string, dim, reach int64, aligned, capped, hopper bool) (*Kernel, error) {
	var best *Kernel
	for i := range table.Kernels {
		kernel := &table.Kernels[i]
		if kernel.Name == name && kernel.DType == dtype && kernel.takes(dim, reach, aligned, capped, hopper) && (best == nil || kernel.before(best)) {
			best = kernel
		}
	}
	if best == nil {
		return nil, fmt.Errorf("there is no %s for heads of %d values of %s", name, dim, dtype)
	}
	return best, nil
}

func (kernel *Kernel) takes(dim, reach int64, aligned, capped, hopper bool) bool {
	switch {
	case kernel.Width < dim || dim < 1, kernel.Target == "sm_90a" && !hopper:
		return false
	case kernel.Plain():
		return aligned && dim == kernel.Width && !capped && (kernel.Form == "plain" || reach < far)
	case kernel.Form == "exact":
		return aligned && dim == kernel.Width
	case kernel.Form == "aligned":
		return aligned && dim%8 == 0
	}
	return true
}

// before orders kernels that all take a call: first the narrowest, then one for aligned addresses,
// then one for Hopper, then one of just the width, and of those a short one.
func (kernel *Kernel) before(other *Kernel) bool {
	switch {
	case kernel.Width != other.Width:
		return kernel.Width < other.Width
	case (kernel.Form == "any") != (other.Form == "any"):
		return other.Form == "any"
	case kernel.Target != other.Target:
		return kernel.Target == "sm_90a"
	}
	return kernel.Form == "short" || kernel.Form != "aligned" && other.Form == "aligned"
}

// Grid returns how many blocks there are to work on, for kernels with splits in each of them. A micro-batch
// has sequences × seq rows; shared is the number of key heads.
func (kernel *Kernel) Grid(sequences, seq, heads, shared, dim int64) int64 {
	switch kernel.Name {
	case "attention_dkv", "attention_backward":
		return (seq + kernel.Rows - 1) / kernel.Rows * shared * sequences
	case "attention_dkv_join":
		return (sequences*seq + kernel.Rows - 1) / kernel.Rows * ((shared*dim + kernel.Width - 1) / kernel.Width)
	}
	return (seq + kernel.Rows - 1) / kernel.Rows * heads * sequences
}

// enough is about two blocks for each of the 132 multiprocessors of an H100. Under a causal mask
// the blocks of a sequence's first keys take twice the mean: with one block per multiprocessor, all
// would wait for them.
const enough = 256

// Splits returns into how many parts the gradients of keys split a group of heads. They are the fewest
// that make enough blocks, as far as their sums fit into workspace bytes. It depends on the shape
// and the workspace alone.
func (kernel *Kernel) Splits(sequences, seq, heads, shared, dim, workspace int64) int64 {
	group, best := heads/shared, int64(1)
	for splits := int64(2); splits <= group && best*kernel.Grid(sequences, seq, heads, shared, dim) < enough; splits++ {
		if group%splits == 0 && splits*2*4*sequences*seq*shared*dim <= workspace {
			best = splits
		}
	}
	return best
}
