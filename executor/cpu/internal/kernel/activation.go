package kernel

import (
	"fmt"
	"math"
)

// activation is a function with its derivative, both computed in float64.
type activation struct{ value, slope func(x float64) float64 }

// sigmoid is 1/(1 + e⁻ˣ).
func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// The approximation of gelu is x/2·(1 + tanh(root·(x + cubic·x³))), by Hendrycks
// and Gimpel (arXiv 1606.08415).
const cubic = 0.044715

var root = math.Sqrt(2 / math.Pi)

var activations = map[string]activation{
	"silu": {
		func(x float64) float64 { return x * sigmoid(x) },
		func(x float64) float64 { part := sigmoid(x); return part * (1 + x*(1-part)) },
	},
	"gelu": {
		func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
		func(x float64) float64 {
			return math.Erfc(-x/math.Sqrt2)/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
		},
	},
	"gelu_tanh": {
		func(x float64) float64 { return x / 2 * (1 + math.Tanh(root*(x+cubic*x*x*x))) },
		func(x float64) float64 {
			tanh := math.Tanh(root * (x + cubic*x*x*x))
			return (1+tanh)/2 + x/2*(1-tanh*tanh)*root*(1+3*cubic*x*x)
		},
	},
	"relu": {
		func(x float64) float64 { return max(x, 0) },
		func(x float64) float64 {
			if x > 0 {
				return 1
			}
			return 0
		},
	},
	"tanh": {
		math.Tanh,
		func(x float64) float64 { tanh := math.Tanh(x); return 1 - tanh*tanh },
	},
}

func (call *Call) activation() (activation, error) {
	name := call.text("activation")
	found, ok := activations[name]
	if !ok {
		return found, fmt.Errorf("%s has no activation %q", call.Kernel.Name, name)
	}
	return found, nil
}

// byRow calls f with rows of inputs, one after another, and stores its results as rows of outputs.
// Outputs may have the place of inputs.
func (call *Call) byRow(inputs, outputs []string, f func(from, to [][]float32)) error {
	read, err := call.need(inputs...)
	if err != nil {
		return err
	}
	written, err := call.need(outputs...)
	if err != nil {
		return err
	}
	rows, columns := written[0].Rows, written[0].Columns
	inRows(rows, columns, func(first, end int64) {
		from, to, buffers := make([][]float32, len(read)), make([][]float32, len(written)), make([][]float32, len(read))
		for i := range read {
			buffers[i] = make([]float32, columns)
		}
		for i := range written {
			to[i] = make([]float32, columns)
		}
		for row := first; row < end; row++ {
			for i := range read {
				from[i] = read[i].row(row, buffers[i])
			}
			f(from, to)
			for i := range written {
				written[i].Store(row, 0, to[i])
			}
		}
	})
	return nil
}
