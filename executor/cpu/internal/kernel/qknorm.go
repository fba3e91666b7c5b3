package kernel

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// headNorm is RMSNorm of each head.
type headNorm struct {
	weight  []float32 // the factor: 1 + weight if gemma
	epsilon float64
	gemma   bool
}

func (call *Call) headNorm(role string) *headNorm {
	norm := &headNorm{weight: make([]float32, call.size("dim", 0)), epsilon: call.number("epsilon", 0), gemma: call.text("style") == string(modelgraph.GemmaRMSNorm)}
	call.matrix(role).Load(0, 0, norm.weight)
	if norm.gemma {
		for i := range norm.weight {
			norm.weight[i]++
		}
	}
	return norm
}

// rstd returns 1/σ of a head.
func (norm *headNorm) rstd(head []float32) float32 {
	squares := 0.
	for _, value := range head {
		squares += float64(value) * float64(value)
	}
	return float32(1 / math.Sqrt(squares/float64(len(head))+norm.epsilon))
}

// apply norms the heads of a row. LlamaRMSNorm rounds before it multiplies by the weight,
// Gemma3RMSNorm rounds once.
func (norm *headNorm) apply(row []float32, round func(value float32) float32) {
	dim := len(norm.weight)
	for ; len(row) > 0; row = row[dim:] {
		head := row[:dim]
		rstd := norm.rstd(head)
		for i, value := range head {
			normed := value * rstd
			if !norm.gemma {
				normed = round(normed)
			}
			head[i] = round(normed * norm.weight[i])
		}
	}
}

func qknorm(call *Call) error {
	rows := call.size("rows", 0)
	shared, err := call.rotation(rows)
	if err != nil {
		return err
	}
	for _, role := range []string{"q", "k"} {
		from, to, norm := call.matrix(role), call.matrix("y"+role), call.headNorm(role+"weight")
		round := to.rounding()
		inRows(rows, from.Columns, func(first, end int64) {
			rotation, row := own(shared), make([]float32, from.Columns)
			for i := first; i < end; i++ {
				from.Load(i, 0, row)
				norm.apply(row, round)
				if rotation != nil {
					rotation.set(call.position(i), round)
					rotation.turn(row, false, round)
				}
				to.Store(i, 0, row)
			}
		})
	}
	return nil
}

// qknormBackward rotates the gradients of q and k back and takes them through the norms, in place.
// Row i adds to part i modulo the number of parts of the weights' gradients. Each part is added up
// in row order.
func qknormBackward(call *Call) error {
	shared, err := call.rotation(call.size("rows", 0))
	if err != nil {
		return err
	}
	for _, role := range []string{"q", "k"} {
		from, parts := call.matrix(role), call.matrix(role+"sums")
		inRows(parts.Rows, (from.Rows/parts.Rows+1)*from.Columns, func(first, end int64) {
			back := &qknormBack{
				call: call, rotation: own(shared), norm: call.headNorm(role + "weight"), from: from, gradient: call.matrix("d" + role),
				row: make([]float32, from.Columns), slope: make([]float32, from.Columns), sums: make([]float64, call.size("dim", 0)),
			}
			for part := first; part < end; part++ {
				parts.Store(part, 0, back.part(part, parts.Rows))
			}
		})
	}
	return nil
}

// qknormBack is the state of a worker of qknormBackward.
type qknormBack struct {
	call           *Call
	rotation       *rotation
	norm           *headNorm
	from, gradient *Matrix
	row, slope     []float32
	sums           []float64
}

// part computes the gradients of its rows, and returns their part of the weight's gradient.
func (back *qknormBack) part(first, parts int64) []float32 {
	round := back.gradient.rounding()
	clear(back.sums)
	for i := first; i < back.from.Rows; i += parts {
		back.from.Load(i, 0, back.row)
		back.gradient.Load(i, 0, back.slope)
		if back.rotation != nil {
			back.rotation.set(back.call.position(i), round)
			back.rotation.turn(back.slope, true, round)
		}
		back.norm.back(back.row, back.slope, back.sums)
		back.gradient.Store(i, 0, back.slope)
	}
	weight := make([]float32, len(back.sums))
	for i, sum := range back.sums {
		weight[i] = float32(sum)
	}
	return weight
}

// back replaces the gradient of normed heads by that of their input, and adds the weight's to sums.
func (norm *headNorm) back(row, gradient []float32, sums []float64) {
	dim := len(norm.weight)
	for first := 0; first < len(row); first += dim {
		head, slope := row[first:first+dim], gradient[first:first+dim]
		rstd, product := float64(norm.rstd(head)), 0.
		for i, value := range head {
			normed := float64(value) * rstd
			sums[i] += float64(slope[i]) * normed
			product += float64(slope[i]) * float64(norm.weight[i]) * normed
		}
		product /= float64(dim)
		for i, value := range head {
			slope[i] = float32(rstd * (float64(slope[i])*float64(norm.weight[i]) - float64(value)*rstd*product))
		}
	}
}
