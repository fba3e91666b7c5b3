package modelgraph

import (
	"fmt"
	"math/bits"
)

// Tensor is a parameter or buffer of a layer.
type Tensor struct {
	// Name is relative to the layer's module path. It is empty for a bare
	// parameter, whose layer carries the parameter's own name.
	Name  string
	Shape []int64
	DType DType
	// Parts are the checkpoint tensors that this one is read from, in order of
	// concatenation; empty if no checkpoint was read.
	Parts []Part
	// Owner is the full name of the tensor that this one is tied to; empty
	// for a tensor that owns its storage.
	Owner string
	// Persistent: it is a buffer in state dicts and checkpoints.
	Persistent bool
	// Frozen: training never changes it. It has no gradient and no state of the optimizer.
	Frozen bool

	// Numel is the number of elements, and Bytes the stored size. [NewTensor] and [New] compute
	// both.
	Numel, Bytes int64
}

// Part is a tensor in a checkpoint file.
type Part struct {
	Name       string // with the checkpoint's spelling
	File       string
	DType      DType
	Begin, End int64 // byte offsets in the file
}

// maxBytes keeps sums of many tensors far from overflow.
const maxBytes = int64(1) << 56

// NewTensor returns a tensor with its size computed. A negative dimension or
// more than 2^56 bytes is an error.
func NewTensor(name string, dtype DType, shape ...int64) (Tensor, error) {
	tensor := Tensor{Name: name, Shape: shape, DType: dtype}
	err := tensor.measure()
	return tensor, err
}

// measure computes the element count and byte size from shape and type.
func (tensor *Tensor) measure() error {
	info := tensor.DType.info()
	if info.bits == 0 && info.elements == 0 {
		return fmt.Errorf("tensor %q has no dtype", tensor.Name)
	}
	count := uint64(1)
	for _, d := range tensor.Shape {
		if d < 0 {
			return fmt.Errorf("tensor %q has a negative dimension in shape %v", tensor.Name, tensor.Shape)
		}
		hi, lo := bits.Mul64(count, uint64(d))
		if hi != 0 || lo > uint64(maxBytes) {
			return fmt.Errorf("tensor %q of shape %v is larger than 2^56 bytes", tensor.Name, tensor.Shape)
		}
		count = lo
	}
	if info.elements > 0 {
		return tensor.measureBlocks(int64(count), info)
	}
	hi, lo := bits.Mul64(count, uint64(info.bits))
	if size := lo/8 + (lo%8+7)/8; hi != 0 || size > uint64(maxBytes) {
		return fmt.Errorf("tensor %q of shape %v is larger than 2^56 bytes", tensor.Name, tensor.Shape)
	}
	tensor.Numel, tensor.Bytes = int64(count), int64(lo/8+(lo%8+7)/8)
	return nil
}

// measureBlocks computes the size of a type whose rows are cut into blocks.
func (tensor *Tensor) measureBlocks(count int64, info dtypeInfo) error {
	if last := len(tensor.Shape) - 1; last < 0 || tensor.Shape[last]%info.elements != 0 {
		return fmt.Errorf("tensor %q: rows of shape %v are not whole blocks of %d elements of %s", tensor.Name, tensor.Shape, info.elements, info.name)
	}
	tensor.Numel, tensor.Bytes = count, count/info.elements*info.bytes
	return nil
}

// FullName joins a layer's module path and a tensor's name.
func FullName(layer, tensor string) string {
	switch {
	case tensor == "":
		return layer
	case layer == "":
		return tensor
	}
	return layer + "." + tensor
}
