package kernel

import "github.com/devmap-dev/devmap/modelgraph"

// normBackward computes the gradient of a norm's input in fp32, adds the stream's and rounds once.
// It also adds up the gradients of weight and bias: row i goes into part i modulo the number of
// parts. Each part is added up in row order, whatever the number of workers.
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

// normedBack is the state of one worker.
type normedBack struct {
	*normed
	x, dy, made  []float32
	weight, bias []float32 // sums
}

// row computes the gradient of a row's input: rstd·(g − mean(g) − n·mean(g·n)). n is the normed row
// and g its gradient. Only LayerNorm subtracts mean(g).
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
