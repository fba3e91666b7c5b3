package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// norm is a normalisation of rows: RMSNorm (Zhang and Sennrich,
// arXiv 1910.07467) or LayerNorm (arXiv 1607.06450). Of its forward backward
// needs the input and one or two numbers a row in fp32; its output is made
// again from those.
type norm struct {
	style        modelgraph.NormStyle
	dims         []Dim
	weight, bias *weight
	width        int64
	x            int // the input
	rstd, mean   int // a row each; mean of LayerNorm alone
}

// normOf finds the parameters of a norm.
func (w *writer) normOf(layer int) (*norm, error) {
	op, _ := w.graph.Layers[layer].Op.(modelgraph.Norm)
	n := &norm{style: op.Style, width: op.Dim, rstd: -1, mean: -1}
	if n.style == "" {
		n.style = modelgraph.RMSNorm
	}
	var err error
	if n.weight, err = w.need(layer, 1, op.Dim, "weight", ""); err != nil {
		return nil, err
	}
	if op.Style == modelgraph.LayerNorm {
		if n.bias, err = w.need(layer, 1, op.Dim, "bias"); err != nil {
			return nil, err
		}
	}
	epsilon := op.Epsilon
	n.dims = []Dim{size("rows", 0), size("columns", op.Dim), word("style", string(n.style)), number("epsilon", epsilon)}
	return n, nil
}

func (n *norm) sized(rows int64) []Dim {
	dims := append([]Dim(nil), n.dims...)
	dims[0] = size("rows", rows)
	return dims
}

// parameters are the operands of weight and bias.
func (n *norm) parameters() []Operand {
	operands := []Operand{in("weight", n.weight.value)}
	if n.bias != nil {
		operands = append(operands, in("bias", n.bias.value))
	}
	return operands
}

// normalise is y = norm(x) (+ add), and keeps what backward needs.
func (w *writer) normalise(n *norm, x, y int, add ...Operand) {
	n.x = x
	operands := append([]Operand{in("x", x)}, n.parameters()...)
	for _, more := range add {
		operands = append(operands, more.as("add"))
	}
	operands = append(operands, out("y", y))
	if w.train {
		n.rstd = w.kept("rstd", modelgraph.F32, w.count, 1)
		operands = append(operands, out("rstd", n.rstd))
		if n.style == modelgraph.LayerNorm {
			n.mean = w.kept("mean", modelgraph.F32, w.count, 1)
			operands = append(operands, out("mean", n.mean))
		}
	}
	w.kernel("norm", n.sized(w.count), operands...)
}

// statistics are the operands that forward kept.
func (n *norm) statistics() []Operand {
	operands := []Operand{in("x", n.x), in("rstd", n.rstd)}
	if n.mean >= 0 {
		operands = append(operands, in("mean", n.mean))
	}
	return operands
}

// again makes the norm's output once more.
func (w *writer) again(n *norm) int {
	y := w.temporary("normed.again", w.dtype, w.count, n.width)
	w.kernel("norm_again", n.sized(w.count), append(append(n.statistics(), n.parameters()...), out("y", y))...)
	return y
}

// normBack makes the gradients of the norm's input (+ add) and parameters
// from its output's.
func (w *writer) normBack(n *norm, dy, dx int, add ...Operand) {
	parts := partsOf(w.count)
	sums := w.temporary("weight.sums", modelgraph.F32, parts, n.width)
	operands := append([]Operand{in("dy", dy)}, n.statistics()...)
	operands = append(operands, in("weight", n.weight.value))
	for _, more := range add {
		operands = append(operands, more.as("add"))
	}
	operands = append(operands, out("dx", dx), out("sums", sums))
	biases := -1
	if n.bias != nil {
		biases = w.temporary("bias.sums", modelgraph.F32, parts, n.width)
		operands = append(operands, out("biases", biases))
	}
	w.kernel("norm_backward", n.sized(w.count), operands...)
	w.addSums(sums, n.weight)
	if biases >= 0 {
		w.addSums(biases, n.bias)
	}
}

// alone is a norm of the stream.
func (w *writer) alone(layer int, last bool) error {
	n, err := w.normOf(layer)
	if err != nil {
		return err
	}
	if err := w.carries(layer, n.width); err != nil {
		return err
	}
	x := w.from()
	w.normalise(n, x, w.to(last))
	w.backs = append(w.backs, func() {
		dy := w.gradient()
		w.normBack(n, dy, w.gone())
	})
	return nil
}
