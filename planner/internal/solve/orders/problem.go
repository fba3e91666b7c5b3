// Package orders finds the order in which the GPUs of a pipeline run their passes. A pass is the
// forward of a chunk of the chain, the gradient of its input, or the gradients of its weights, for
// one micro-batch. The order has the shortest step in which no GPU holds more bytes than its cap.
//
// All micro-batches cost the same. A valid order remains valid if the i-th pass of every kind is of
// micro-batch i. It takes no longer then: at every moment, as many passes of each kind have ended. So
// a row is a list of passes without numbers.
//
// Memory depends on the row of a GPU alone. Each part of a chunk's memory is a ring, with as many sets
// as micro-batches that use it at once. A GPU has all its rings throughout.
package orders

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Kind is what a pass computes.
type Kind uint8

// The kinds of passes.
const (
	Forward Kind = iota
	Input        // the gradient of the chunk's input
	Weight       // the gradients of the chunk's weights
	kinds
)

// Pass is a pass of a chunk for the next micro-batch of its kind.
type Pass struct {
	Kind  Kind
	Chunk int
}

// Chunk is a run of the chain. Times are whole numbers of any unit, memory is in bytes of one
// micro-batch.
type Chunk struct {
	GPU int
	// Forward, Input and Weight are the times of the passes. Forward and Input are at least 1.
	Forward, Input, Weight int64
	// ToInput is used from Forward to the end of Input, ToWeight from Forward to the end of Weight,
	// and Between from Input to the end of Weight.
	ToInput, ToWeight, Between int64
	// Joint: Weight is a part of Input, so that rows have no Weight. ToWeight then ends with Input,
	// and Between is 0.
	Joint bool
	// Send is the time of the message to the next chunk, Back of the gradient from it.
	Send, Back int64
}

// Problem is a pipeline without an order. Chunks are in the order of the chain.
type Problem struct {
	Chunks       []Chunk
	Caps         []int64 // by GPU, for the bytes of the rings
	MicroBatches int
	// Ahead limits how many passes a chunk runs ahead of the one that waits for it, as channels
	// hold few messages. It limits the orders found by trial; 0 is no limit. Bounds and complete
	// searches ignore it.
	Ahead int
}

// Order is a row of passes for each GPU.
type Order [][]Pass

func (order Order) clone() Order {
	out := make(Order, len(order))
	for gpu, row := range order {
		out[gpu] = slices.Clone(row)
	}
	return out
}

// SmallError is a cap below one set of each ring of the GPU's chunks. Least are the smallest caps that
// work, by GPU.
type SmallError struct {
	GPU   int
	Least []int64
}

// Error implements error.
func (err *SmallError) Error() string {
	return fmt.Sprintf("one micro-batch on GPU %d uses %d bytes, more than its cap", err.GPU, err.Least[err.GPU])
}

// errNumbers is a problem outside the numbers that can be added.
var errNumbers = errors.New("orders: a number is negative or too large")

const largest = math.MaxInt64 / 16

// check refuses numbers whose sums do not fit, and caps below one micro-batch.
func (problem *Problem) check() error {
	if problem.MicroBatches < 1 || len(problem.Chunks) == 0 || len(problem.Caps) == 0 {
		return errors.New("orders: no chunk, GPU or micro-batch")
	}
	passes := float64(problem.MicroBatches) * 8
	time, bytes := 0., 0.
	for i := range problem.Chunks {
		chunk := &problem.Chunks[i]
		low := min(chunk.Weight, chunk.ToInput, chunk.ToWeight, chunk.Between, chunk.Send, chunk.Back, int64(chunk.GPU), chunk.Forward-1, chunk.Input-1)
		if low < 0 || chunk.GPU >= len(problem.Caps) || chunk.Joint && chunk.Weight+chunk.Between > 0 {
			return errNumbers
		}
		time += passes * (float64(chunk.Forward) + float64(chunk.Input) + float64(chunk.Weight) + float64(chunk.Send) + float64(chunk.Back))
		bytes += passes * (float64(chunk.ToInput) + float64(chunk.ToWeight) + float64(chunk.Between))
	}
	if time > largest || bytes > largest {
		return errNumbers
	}
	least := problem.LeastCaps()
	for gpu, limit := range problem.Caps {
		if least[gpu] > limit {
			return &SmallError{gpu, least}
		}
	}
	return nil
}

// LeastCaps returns the smallest cap of each GPU with which an order exists: one set of each ring.
// One micro-batch after another, each Weight directly after its Input, is then an order.
func (problem *Problem) LeastCaps() []int64 {
	out := make([]int64, len(problem.Caps))
	for i := range problem.Chunks {
		chunk := &problem.Chunks[i]
		out[chunk.GPU] += chunk.ToInput + chunk.ToWeight + chunk.Between
	}
	return out
}

// takes returns the time of a pass.
func (chunk *Chunk) takes(kind Kind) int64 {
	return [kinds]int64{chunk.Forward, chunk.Input, chunk.Weight}[kind]
}

// kinds is the number of passes of a micro-batch.
func (chunk *Chunk) kinds() Kind {
	if chunk.Joint {
		return Weight
	}
	return kinds
}

// of returns the chunks of each GPU in the order of the chain.
func (problem *Problem) of() [][]int {
	out := make([][]int, len(problem.Caps))
	for i := range problem.Chunks {
		out[problem.Chunks[i].GPU] = append(out[problem.Chunks[i].GPU], i)
	}
	return out
}

// passes is the number of passes of a complete order.
func (problem *Problem) passes() (count int) {
	for i := range problem.Chunks {
		count += int(problem.Chunks[i].kinds()) * problem.MicroBatches
	}
	return count
}

// before returns the pass that a pass waits for, and the time of the message between them. The
// first chunk's forward waits for none.
func (problem *Problem) before(pass Pass) (Pass, int64, bool) {
	switch {
	case pass.Kind == Weight:
		return Pass{Input, pass.Chunk}, 0, true
	case pass.Kind == Input && pass.Chunk == len(problem.Chunks)-1:
		return Pass{Forward, pass.Chunk}, 0, true
	case pass.Kind == Input:
		return Pass{Input, pass.Chunk + 1}, problem.Chunks[pass.Chunk].Back, true
	case pass.Chunk > 0:
		return Pass{Forward, pass.Chunk - 1}, problem.Chunks[pass.Chunk-1].Send, true
	}
	return Pass{}, 0, false
}

// sends returns the pass of a neighbouring chunk that waits for this one's message; false: none does.
func (problem *Problem) sends(pass Pass) (Pass, bool) {
	next := Pass{pass.Kind, pass.Chunk + 1}
	if pass.Kind == Input {
		next.Chunk = pass.Chunk - 1
	}
	return next, pass.Kind != Weight && next.Chunk >= 0 && next.Chunk < len(problem.Chunks)
}

func index(pass Pass) int { return pass.Chunk*int(kinds) + int(pass.Kind) }
