//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// mostTurned is how many frequencies the kernels' argument has room for: those of heads of 256
// values.
const mostTurned = 128

// turn adds the inverse frequencies of the rotation. They are an argument, so that they take no
// byte of the arena.
func turn(call *Call, launch *packed) error {
	found, err := callFrequencies(call)
	if err != nil {
		return err
	}
	if call.size("past", -1) < 0 || !Moves(call) {
		found.add(&launch.arguments)
		return nil
	}
	attention, last := rotationOf(call)
	launch.later(func(step *Step, arguments *driver.Arguments) {
		// No error: frequencies that exist for a token exist for the next.
		later, _ := frequenciesOf(&attention, last+1+step.Past)
		later.add(arguments)
	})
	return nil
}

// rotationOf returns the rotation of a call, and the position of its last row before any token was
// generated: dynamic_frequency_update (modeling_rope_utils.py) takes the length so far.
func rotationOf(call *Call) (attention modelgraph.Attention, last int64) {
	attention = modelgraph.Attention{Rope: true, HeadDim: call.size("dim", 0), Rotation: modelgraph.Rotation{
		Type: call.text("rope"), Base: call.number("base", 0), Width: call.size("width", 0),
		Factor: call.number("factor", 0), Trained: call.size("trained", 0),
		Slow: call.number("slow", 0), Fast: call.number("fast", 0),
		AttentionFactor: call.number("attention_factor", 0), Untruncated: call.text("truncate") == "false",
	}}
	return attention, max(call.size("past", -1), (call.size("rows", 1)-1)%call.size("seq", 1))
}

// Moves reports whether a kernel has arguments that change with the position, other than what
// [Kernels.SetPlace] sets.
func Moves(call *Call) bool { return call.text("rope") == "dynamic" }

// callFrequencies returns the frequencies of a call before any token was generated.
func callFrequencies(call *Call) (frequencies, error) {
	if call.text("rope") == "" {
		return frequencies{factor: 1}, nil
	}
	attention, last := rotationOf(call)
	return frequenciesOf(&attention, last+1)
}

// frequencies are the inverse frequencies of a rotation, and the factor of cosines and sines.
type frequencies struct {
	inverse []float32
	factor  float64
}

func frequenciesOf(attention *modelgraph.Attention, tokens int64) (frequencies, error) {
	inverse, factor, err := attention.Frequencies(tokens)
	if len(inverse) > mostTurned {
		err = fmt.Errorf("%d values of a head turn, there are kernels for %d", 2*len(inverse), 2*mostTurned)
	}
	return frequencies{inverse, factor}, err
}

func (found frequencies) add(arguments *driver.Arguments) {
	arguments.Int64(int64(len(found.inverse))).Float64(found.factor)
	for i := range mostTurned {
		var value float32
		if i < len(found.inverse) {
			value = found.inverse[i]
		}
		arguments.Float32(value)
	}
}
