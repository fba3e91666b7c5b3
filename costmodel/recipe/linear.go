package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// linear is a projection: its weight [out, in], or [in, out] if it is
// transposed (pytorch_utils.py: Conv1D), and its bias.
type linear struct {
	weight, bias *weight
	in, out      int64
	transposed   bool
}

// linearOf finds the projection of a layer under one of these names.
func (params *parameters) linearOf(layer int, in, out int64, transposed bool, names ...string) (*linear, error) {
	linear := &linear{in: in, out: out, transposed: transposed}
	weights, biases := make([]string, 0, len(names)+1), make([]string, 0, len(names))
	for _, name := range names {
		weights, biases = append(weights, modelgraph.FullName(name, "weight")), append(biases, modelgraph.FullName(name, "bias"))
		if name == "" { // a bare parameter is its own weight
			weights = append(weights, "")
		}
	}
	rows, columns := out, in
	if transposed {
		rows, columns = in, out
	}
	var err error
	if linear.weight, err = params.need(layer, rows, columns, weights...); err != nil {
		return nil, err
	}
	if linear.bias = params.find(layer, biases...); linear.bias != nil {
		_, err = params.need(layer, 1, out, biases...)
	}
	return linear, err
}

// project is y = x·weight + bias (+ add).
func (linear *linear) project(writer *writer, x, y Operand, add ...Operand) {
	form := "nt"
	if linear.transposed {
		form = "nn"
	}
	operands := []Operand{x.as("a"), in("b", linear.weight.value)}
	if linear.bias != nil {
		operands = append(operands, in("bias", linear.bias.value))
	}
	for _, more := range add {
		operands = append(operands, more.as("add"))
	}
	writer.product(form, writer.rowsIn(&x), linear.out, linear.in, append(operands, y.as("d"))...)
}

// learn makes the gradients of a projection's weight and bias.
func (linear *linear) learn(writer *writer, x, dy Operand) {
	a, b, rows, columns := dy, x, linear.out, linear.in
	if linear.transposed {
		a, b, rows, columns = x, dy, linear.in, linear.out
	}
	writer.product("tn", rows, columns, writer.rowsIn(&x), a.as("a"), b.as("b"), gather(linear.weight.gradient))
	if linear.bias != nil {
		writer.columnSums(dy, linear.out, linear.bias)
	}
}

// columnSums adds up a gradient's rows: each part of the rows in order, then the parts. Parts
// depend only on the number of rows, so the sum does not depend on the GPU.
func (asm *assembler) columnSums(x Operand, width int64, bias *weight) {
	parts := partsOf(asm.rowsIn(&x))
	sums := asm.temporary("sums", modelgraph.F32, parts, width)
	asm.kernel("column_sums", []Dim{size("rows", asm.rowsIn(&x)), size("columns", width)}, x.as("x"), out("sums", sums))
	asm.addSums(sums, bias)
}

// addSums gives partial sums to a gradient.
func (asm *assembler) addSums(sums int, bias *weight) {
	tensor := &asm.code.Tensors[sums]
	asm.kernel("add_rows", []Dim{size("rows", tensor.Rows), size("columns", tensor.Columns)}, in("x", sums), gather(bias.gradient))
}

// partsOf is into how many parts a sum over rows is cut: about as many as an H100 has multiprocessors.
func partsOf(rows int64) int64 { return min(rows, 128) }

// back makes the gradient of the projection's input from its output's: dx = dy·weightᵀ (+ add).
func (linear *linear) back(writer *writer, dy, dx Operand, add ...Operand) {
	form := "nn"
	if linear.transposed {
		form = "nt"
	}
	operands := []Operand{dy.as("a"), in("b", linear.weight.value)}
	for _, more := range add {
		operands = append(operands, more.as("add"))
	}
	writer.product(form, writer.rowsIn(&dy), linear.in, linear.out, append(operands, dx.as("d"))...)
}

// product is a kernel d[m,n] = a·b + bias + add. It rounds a·b + bias to d's type, then rounds the
// sum with add, as PyTorch does with a module's output and the residual. Layouts by form:
//   - nn: a[m,k] b[k,n]
//   - nt: a[m,k] b[n,k]
//   - tn: a[k,m] b[k,n]
func (asm *assembler) product(form string, m, n, k int64, operands ...Operand) {
	kernel := asm.kernel("gemm", []Dim{word("form", form), size("m", m), size("n", n), size("k", k)}, operands...)
	kernel.Products = 2 * float64(m) * float64(n) * float64(k)
	for i := range operands {
		kernel.Unaligned = kernel.Unaligned || asm.unaligned(&operands[i])
	}
}

// unaligned reports a 16-bit matrix with rows that do not begin at multiples of 16 bytes, as the
// tensor memory accelerator needs.
func (asm *assembler) unaligned(operand *Operand) bool {
	tensor := &asm.code.Tensors[operand.Tensor]
	each := bytesOf(tensor.DType)
	return each == 2 && tensor.Rows > 1 && (tensor.Columns*each%16 != 0 || operand.Column*each%16 != 0)
}

// rowsIn is the number of rows of an operand.
func (asm *assembler) rowsIn(operand *Operand) int64 {
	if operand.Rows > 0 {
		return operand.Rows
	}
	return asm.code.Tensors[operand.Tensor].Rows
}
