package kernel

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// rotation rotates heads by their position, like apply_rotary_pos_emb in Transformers. Value i of
// the first half of a head's width is rotated with value i of the second.
type rotation struct {
	dim      int
	inverse  []float32 // radians a position
	factor   float32   // of cosines and sines
	cos, sin []float32 // of the position that was set
}

// rotation returns the rotation of the kernel's dims, nil if they have none.
func (call *Call) rotation(rows int64) (*rotation, error) {
	if call.text("rope") == "" {
		return nil, nil
	}
	attention := modelgraph.Attention{Rope: true, HeadDim: call.size("dim", 0), Rotation: modelgraph.Rotation{
		Type: call.text("rope"), Base: call.number("base", 0), Width: call.size("width", 0),
		Factor: call.number("factor", 0), Trained: call.size("trained", 0),
		Slow: call.number("slow", 0), Fast: call.number("fast", 0),
		AttentionFactor: call.number("attention_factor", 0), Untruncated: call.text("truncate") == "false",
	}}
	// The last row has the last position: dynamic_frequency_update (modeling_rope_utils.py) takes
	// the length so far.
	inverse, factor, err := attention.Frequencies(call.position(rows-1) + 1)
	if err != nil {
		return nil, err
	}
	return &rotation{dim: int(attention.HeadDim), inverse: inverse, factor: float32(factor)}, nil
}

// own returns a copy for one goroutine, which sets its own positions. It is nil if shared is nil.
func own(shared *rotation) *rotation {
	if shared == nil {
		return nil
	}
	owned := *shared
	owned.cos, owned.sin = make([]float32, len(shared.inverse)), make([]float32, len(shared.inverse))
	return &owned
}

// set computes the cosines and sines of a position. Angles are in fp32, as in torch. The results
// are rounded to the type of the heads.
func (rotation *rotation) set(position int64, round func(value float32) float32) {
	for i, inverse := range rotation.inverse {
		angle := float64(float32(position) * inverse)
		rotation.cos[i] = round(float32(math.Cos(angle)) * rotation.factor)
		rotation.sin[i] = round(float32(math.Sin(angle)) * rotation.factor)
	}
}

// turn rotates the heads of a row. Both products are rounded, and their sum is. back rotates the
// other way, as the gradient needs: the sines change their sign.
func (rotation *rotation) turn(row []float32, back bool, round func(value float32) float32) {
	half := len(rotation.inverse)
	for ; len(row) > 0; row = row[rotation.dim:] {
		for i, cos := range rotation.cos {
			sin := rotation.sin[i]
			if back {
				sin = -sin
			}
			first, second := row[i], row[half+i]
			row[i] = round(round(first*cos) + round(-second*sin))
			row[half+i] = round(round(second*cos) + round(first*sin))
		}
	}
}

func rope(call *Call) error { return call.turnAll("q", "k", false) }

func ropeBackward(call *Call) error { return call.turnAll("dq", "dk", true) }

// turnAll rotates two matrices in place.
func (call *Call) turnAll(first, second string, back bool) error {
	matrices := [2]*Matrix{call.matrix(first), call.matrix(second)}
	rows := call.size("rows", 0)
	shared, err := call.rotation(rows)
	if err != nil || shared == nil {
		return err
	}
	round, widest := matrices[0].rounding(), max(matrices[0].Columns, matrices[1].Columns)
	inRows(rows, widest, func(first, end int64) {
		rotation, buffer := own(shared), make([]float32, widest)
		for i := first; i < end; i++ {
			rotation.set(call.position(i), round)
			for _, matrix := range matrices {
				row := buffer[:matrix.Columns]
				matrix.Load(i, 0, row)
				rotation.turn(row, back, round)
				matrix.Store(i, 0, row)
			}
		}
	})
	return nil
}
