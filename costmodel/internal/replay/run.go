package replay

import "github.com/devmap-dev/devmap/costmodel/internal/allocator"

// Streams that engines make tensors on; each has pools of its own.
const (
	Compute = iota
	Gather
	Reduce
)

// Run is a process as its allocator sees it.
type Run struct {
	Cache *allocator.Cache
	// Workspace is the size of cuBLAS's, which each thread keeps from its first product on.
	Workspace int64
	called    [2]bool // in forward, in backward
	// Outputs are the results of forwards that the caller keeps until the end of a step.
	Outputs []*Tensor
	// cached are keys and values of past tokens a sequence.
	cached map[*Attention][2]*Tensor
	past   int64
}

// Tensor is one storage, with how many hold it.
type Tensor struct {
	block      *allocator.Block
	references int
}

// NewRun is a process that has no tensors yet.
func NewRun(workspace int64) *Run {
	return &Run{Cache: allocator.NewCache(), Workspace: workspace}
}

// New makes a tensor on the stream that computes; one of no bytes has no block.
func (run *Run) New(bytes int64) *Tensor { return run.On(Compute, bytes) }

// On makes a tensor on a stream.
func (run *Run) On(stream int, bytes int64) *Tensor {
	if bytes == 0 {
		return &Tensor{references: 1}
	}
	return &Tensor{block: run.Cache.Alloc(stream, bytes), references: 1}
}

// Keep is one more who holds the tensor.
func (tensor *Tensor) Keep() *Tensor {
	tensor.references++
	return tensor
}

// Drop removes one reference from each tensor; nil is none. A block returns at once. After
// record_stream it returns when the device gets there, which a host not far ahead sees at its next
// request (process_events).
func (run *Run) Drop(tensors ...*Tensor) {
	for _, tensor := range tensors {
		if tensor == nil {
			continue
		}
		tensor.references--
		if tensor.references == 0 && tensor.block != nil {
			run.Cache.Free(tensor.block)
		}
	}
}

// product is a matrix product of forward or of backward, which has a thread of its own.
func (run *Run) product(backward int) {
	if !run.called[backward] {
		run.called[backward] = true
		run.New(run.Workspace)
	}
}

// through makes a tensor that is gone at once.
func (run *Run) through(bytes int64) { run.Drop(run.New(bytes)) }

// sum adds a gradient to another: in place if nothing else holds it, else to a new tensor
// (torch/csrc/autograd/input_buffer.cpp, accumulate).
func (run *Run) sum(bytes int64, to, more *Tensor) *Tensor {
	if to == nil {
		return more
	}
	if to.references == 1 {
		run.Drop(more)
		return to
	}
	if more.references == 1 {
		run.Drop(to)
		return more
	}
	total := run.New(bytes)
	run.Drop(to, more)
	return total
}
