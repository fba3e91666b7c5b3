package recipe

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Class is a tensor's place, and so its lifetime:
//
//	weight           Offset in the unit's weights; in a tie's where it is tied
//	gradient         of a weight: in the unit's gradients
//	master           a weight in fp32, for the optimizer
//	state            the optimizer's moments of a weight
//	cache            keys and values of all sequences
//	feed             ids and labels of all sequences
//	result           what the caller gets
//	saved            from forward to backward or its first half, of a micro-batch
//	late             from forward to the second half of a backward
//	pending          from the first half of a backward to the second
//	input            the message that comes in; in training kept to backward
//	output           the message to the next stage
//	output.gradient  comes back
//	input.gradient   goes back
//	token            ids made last, one a sequence: of this device's head, or received
//	norms            squared norms of the unit's gradients, one a parameter
//	total            the squared norm of all gradients
//	temporary        in the scratch of one pass
type Class string

const (
	classWeight         Class = "weight"
	classGradient       Class = "gradient"
	classMaster         Class = "master"
	classState          Class = "state"
	classCache          Class = "cache"
	classFeed           Class = "feed"
	classResult         Class = "result"
	classSaved          Class = "saved"
	classLate           Class = "late"
	classPending        Class = "pending"
	classInput          Class = "input"
	classOutput         Class = "output"
	classOutputGradient Class = "output.gradient"
	classInputGradient  Class = "input.gradient"
	classToken          Class = "token"
	classNorms          Class = "norms"
	classTotal          Class = "total"
	classTemporary      Class = "temporary"
)

// Tensor is a matrix that kernels read and write, rows one after the other.
type Tensor struct {
	// Name is its name in the unit. A weight's is the model's without the unit's name ("self" for a
	// bare parameter), a gradient's the same with ".gradient".
	Name          string
	Class         Class
	Pass          string // whose scratch holds it, of a temporary
	DType         modelgraph.DType
	Rows, Columns int64
	// Offset is its offset in the buffer of its class, a multiple of [costmodel.RegionAlign].
	Offset int64
	// Parts: it holds the rows of all micro-batches in order, and a pass touches its own. Feeds,
	// caches, losses and result ids have parts.
	Parts bool
	// Tie is the index in [costmodel.Regions.Tied] of a weight that another unit owns, -1 of others.
	Tie int
}

// bytes is the space that it takes: a multiple of [costmodel.RegionAlign].
func (tensor *Tensor) bytes() int64 {
	return padded(tensor.Rows * tensor.Columns * bytesOf(tensor.DType))
}

// text is a line of a routine: name, class (a temporary's pass, a tied weight's number), offset,
// type and shape, and whether it has parts of all micro-batches.
func (tensor *Tensor) text() string {
	class := string(tensor.Class)
	switch {
	case tensor.Class == classTemporary:
		class = tensor.Pass
	case tensor.Tie >= 0:
		class = fmt.Sprintf("tied%d", tensor.Tie)
	}
	line := fmt.Sprintf("tensor %s %s %d %s %dx%d", tensor.Name, class, tensor.Offset, tensor.DType, tensor.Rows, tensor.Columns)
	if tensor.Parts {
		line += "/parts"
	}
	return line
}

// padded rounds a size up to the next buffer's alignment.
func padded(size int64) int64 {
	return (size + costmodel.RegionAlign - 1) / costmodel.RegionAlign * costmodel.RegionAlign
}

func bytesOf(dtype modelgraph.DType) int64 { return dtype.Bits() / 8 }

// int32Type is the type of token ids and labels: no vocabulary exceeds 2^31 entries, and the feed
// is half as large as with PyTorch's int64.
var int32Type = func() modelgraph.DType {
	dtype, err := modelgraph.ParseDType("I32")
	if err != nil {
		panic(err)
	}
	return dtype
}()
