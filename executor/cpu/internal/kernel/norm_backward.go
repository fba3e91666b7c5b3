package kernel

import "github.com/devmap-dev/devmap/modelgraph"

// normBackward makes the gradients of a norm's input, in fp32 and rounded once
// with the stream's added, and sums for those of weight and bias:
// row i goes into part i modulo the parts, so that each part is added up in the
// order of the rows, whoever does it.
func normBackward(call *Call) error {
	run, err := normOf(call)
	if err != nil {
		return err
	}
	matrices, err := call.need("dy", "dx", "sums", "rstd")
	if err != nil {
		return err
	}
	dy, dx, sums := matrices[0], matrices[1], matrices[2]
	biases, add := call.matrix("biases"), call.matrix("add")
	parts, width := sums.Rows, run.x.Columns
	inRows(parts, width*(run.x.Rows/parts+1), func(first, end int64) {
		back := &normedBack{normed: run}
		for _, buffer := range []*[]float32{&back.x, &back.dy, &back.made, &back.weight, &back.bias} {
			*buffer = make([]float32, width)
		}
		for part := first; part < end; part++ {
			clear(back.weight)
			clear(back.bias)
			for i := part; i < run.x.Rows; i += parts {
				back.row(i, run.x.row(i, back.x), dy.row(i, back.dy))
				if add != nil {
					addTo(back.made, add.row(i, back.x))
				}
				dx.Store(i, 0, back.made)
			}
			sums.Store(part, 0, back.weight)
			if biases != nil {
				biases.Store(part, 0, back.bias)
			}
		}
	})
	return nil
}

// normedBack is one worker's rows.
type normedBack struct {
	*normed
	x, dy, made  []float32
	weight, bias []float32 // sums
}

// row makes the input's gradient of a row: with n the normed row and g the
// gradient of it, rstd·(g − mean(g) − n·mean(g·n)), without the first mean but
// in LayerNorm.
func (back *normedBack) row(i int64, x, dy []float32) {
	mean, rstd := back.moments(i, x)
	sum, product := 0., 0.
	for j, gradient := range dy {
		normed := (x[j] - mean) * rstd
		back.weight[j] += gradient * normed
		back.bias[j] += gradient
		scaled := float64(gradient) * float64(back.factor[j])
		sum += scaled
		product += scaled * float64(normed)
	}
	sum, product = sum/float64(len(x)), product/float64(len(x))
	if back.style != modelgraph.LayerNorm {
		sum = 0
	}
	for j, gradient := range dy {
		normed := (x[j] - mean) * rstd
		back.made[j] = rstd * (gradient*back.factor[j] - float32(sum) - normed*float32(product))
	}
}
