package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// norm is a normalisation of rows: RMSNorm (Zhang and Sennrich, arXiv 1910.07467) or LayerNorm
// (arXiv 1607.06450). Backward reads the input and one or two fp32 numbers a row.
type norm struct {
	style        modelgraph.NormStyle
	dims         []Dim
	weight, bias *weight
	width        int64
	x            int // the input
	rstd, mean   int // a row each; mean of LayerNorm alone
}

// normOf finds the parameters of a norm.
func (params *parameters) normOf(layer int) (*norm, error) {
	op, _ := params.graph.Layers[layer].Op.(modelgraph.Norm)
	norm := &norm{style: op.Style, width: op.Dim, rstd: -1, mean: -1}
	if norm.style == "" {
		norm.style = modelgraph.RMSNorm
	}
	var err error
	if norm.weight, err = params.need(layer, 1, op.Dim, "weight", ""); err != nil {
		return nil, err
	}
	if op.Style == modelgraph.LayerNorm {
		if norm.bias, err = params.need(layer, 1, op.Dim, "bias"); err != nil {
			return nil, err
		}
	}
	epsilon := op.Epsilon
	norm.dims = []Dim{size("rows", 0), size("columns", op.Dim), word("style", string(norm.style)), number("epsilon", epsilon)}
	return norm, nil
}

func (norm *norm) sized(rows int64) []Dim {
	dims := append([]Dim(nil), norm.dims...)
	dims[0] = size("rows", rows)
	return dims
}

// parameters are the operands of weight and bias.
func (norm *norm) parameters() []Operand {
	operands := []Operand{in("weight", norm.weight.value)}
	if norm.bias != nil {
		operands = append(operands, in("bias", norm.bias.value))
	}
	return operands
}

// forward is y = norm(x) (+ add), and keeps what backward needs.
func (norm *norm) forward(writer *writer, x, y int, add ...Operand) {
	norm.x = x
	operands := append([]Operand{in("x", x)}, norm.parameters()...)
	for _, more := range add {
		operands = append(operands, more.as("add"))
	}
	operands = append(operands, out("y", y))
	if writer.train {
		norm.rstd = writer.saved("rstd", modelgraph.F32, writer.count, 1)
		operands = append(operands, out("rstd", norm.rstd))
		if norm.style == modelgraph.LayerNorm {
			norm.mean = writer.saved("mean", modelgraph.F32, writer.count, 1)
			operands = append(operands, out("mean", norm.mean))
		}
	}
	writer.kernel("norm", norm.sized(writer.count), operands...)
}

// statistics are the operands that forward kept.
func (norm *norm) statistics() []Operand {
	operands := []Operand{in("x", norm.x), in("rstd", norm.rstd)}
	if norm.mean >= 0 {
		operands = append(operands, in("mean", norm.mean))
	}
	return operands
}

// again makes the norm's output once more.
func (norm *norm) again(writer *writer) int {
	y := writer.temporary("normed.again", writer.dtype, writer.count, norm.width)
	writer.kernel("norm_again", norm.sized(writer.count), append(append(norm.statistics(), norm.parameters()...), out("y", y))...)
	return y
}

// backward makes the gradients of the norm's input (+ add) and parameters from its output's.
func (norm *norm) backward(writer *writer, dy, dx int, add ...Operand) {
	parts := partsOf(writer.count)
	sums := writer.temporary("weight.sums", modelgraph.F32, parts, norm.width)
	operands := append([]Operand{in("dy", dy)}, norm.statistics()...)
	operands = append(operands, in("weight", norm.weight.value))
	for _, more := range add {
		operands = append(operands, more.as("add"))
	}
	operands = append(operands, out("dx", dx), out("sums", sums))
	biases := -1
	if norm.bias != nil {
		biases = writer.temporary("bias.sums", modelgraph.F32, parts, norm.width)
		operands = append(operands, out("biases", biases))
	}
	writer.kernel("norm_backward", norm.sized(writer.count), operands...)
	writer.addSums(sums, norm.weight)
	if biases >= 0 {
		writer.addSums(biases, norm.bias)
	}
}

// alone is a norm of the stream.
func (writer *writer) alone(layer int, last bool) error {
	norm, err := writer.normOf(layer)
	if err != nil {
		return err
	}
	if err := writer.carries(layer, norm.width); err != nil {
		return err
	}
	x := writer.from()
	norm.forward(writer, x, writer.to(last))
	writer.backs = append(writer.backs, func() {
		dy := writer.gradient()
		norm.backward(writer, dy, writer.gone())
	})
	return nil
}
