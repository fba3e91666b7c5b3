package kernel

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// normed is a norm's matrices and constants.
type normed struct {
	style         modelgraph.NormStyle
	epsilon       float64
	x, rstd, mean *Matrix
	again         bool // 1/σ and mean were kept by an earlier norm
	// factor multiplies a normed row, bias is added.
	factor, bias []float32
}

func normOf(call *Call) (*normed, error) {
	matrices, err := call.need("x", "weight")
	if err != nil {
		return nil, err
	}
	run := &normed{
		style: modelgraph.NormStyle(call.text("style")), epsilon: call.number("epsilon", 0),
		x: matrices[0], rstd: call.matrix("rstd"), mean: call.matrix("mean"), again: call.Kernel.Name != "norm",
	}
	run.factor = make([]float32, run.x.Columns)
	matrices[1].Load(0, 0, run.factor)
	if run.style == modelgraph.GemmaRMSNorm {
		for i, weight := range run.factor {
			run.factor[i] = 1 + weight
		}
	}
	if bias := call.matrix("bias"); bias != nil {
		run.bias = make([]float32, run.x.Columns)
		bias.Load(0, 0, run.bias)
	}
	return run, nil
}

// moments returns a row's mean, for LayerNorm alone, and 1/σ. Both are in fp32, so that a
// recomputation from the kept ones gives the same bits.
func (run *normed) moments(i int64, x []float32) (mean, rstd float32) {
	if run.again {
		if run.mean != nil {
			mean = run.mean.value(i)
		}
		return mean, run.rstd.value(i)
	}
	if run.style == modelgraph.LayerNorm {
		sum := 0.
		for _, value := range x {
			sum += float64(value)
		}
		mean = float32(sum / float64(len(x)))
	}
	squares := 0.
	for _, value := range x {
		away := float64(value) - float64(mean)
		squares += away * away
	}
	rstd = float32(1 / math.Sqrt(squares/float64(len(x))+run.epsilon))
	if run.rstd != nil {
		run.rstd.Store(i, 0, []float32{rstd})
	}
	if run.mean != nil {
		run.mean.Store(i, 0, []float32{mean})
	}
	return mean, rstd
}

// value returns the number of a row that has one.
func (matrix *Matrix) value(row int64) float32 {
	var one [1]float32
	matrix.Load(row, 0, one[:])
	return one[0]
}

// norm rounds as the modules do. LlamaRMSNorm rounds before and after it multiplies by the weight,
// Gemma's norm and LayerNorm once. A branch's norm rounds before it is added to the stream. Without
// y it only keeps the moments of rows.
func norm(call *Call) error {
	run, err := normOf(call)
	if err != nil {
		return err
	}
	y, add := call.matrix("y"), call.matrix("add")
	inRows(run.x.Rows, run.x.Columns, func(first, end int64) {
		buffer, made := make([]float32, run.x.Columns), make([]float32, run.x.Columns)
		for i := first; i < end; i++ {
			if y == nil {
				run.moments(i, run.x.row(i, buffer))
				continue
			}
			run.row(y, made, run.x.row(i, buffer), i)
			if add != nil {
				y.round(made)
				addTo(made, add.row(i, buffer))
			}
			y.Store(i, 0, made)
		}
	})
	return nil
}

// row makes a normed row.
func (run *normed) row(y *Matrix, made, x []float32, i int64) {
	mean, rstd := run.moments(i, x)
	for j, value := range x {
		made[j] = (value - mean) * rstd
	}
	if run.style == modelgraph.RMSNorm {
		y.round(made)
	}
	for j, factor := range run.factor {
		made[j] *= factor
	}
	if run.bias != nil {
		addTo(made, run.bias)
	}
}

func addTo(sum, values []float32) {
	for i, value := range values {
		sum[i] += value
	}
}
