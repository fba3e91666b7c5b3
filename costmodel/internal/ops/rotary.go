package ops

import "github.com/devmap-dev/devmap/modelgraph"

// rotary makes cosines and sines of positions.
type rotary struct {
	plain
	modelgraph.Rotary
}

func (rotary) products() bool { return false }

// cost makes cos and sin [rows, head width] once per forward. They are counted here, once, unless
// layers get their own copies.
func (op rotary) cost(shape *Shape) Cost {
	if shape.Modules != "" { // each program has a table for all positions, a buffer
		return Cost{Known: true}
	}
	rows, element := shape.Length, shape.streamBytes()
	if op.Rows || op.Packed || shape.Positions {
		rows = shape.Tokens
	}
	if op.Packed {
		element = 4
	}
	size := rows * op.HeadDim
	cost := Cost{Known: true, Output: 2 * element * size, FLOPs: 4 * float64(size)}
	cost.Memory.Forward = (3*4 + 2*element) * size
	if op.Packed || !shape.RotaryCopies {
		cost.Memory.Saved, cost.Memory.UntilBodyEnd = cost.Output, cost.Output
	}
	return cost
}

func (op rotary) bound(*Shape) bound { return bound{width: float64(op.HeadDim)} }
