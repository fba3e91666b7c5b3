package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// mlp applies down to the product of the activated gate and up; without a gate, to the activated
// up.
// Backward keeps the activation's input and makes its result again.
type mlp struct {
	up         []*linear // gate and up; one if they are fused, or not gated
	down       *linear
	gated      bool
	hidden     int64
	activation string
	saved      []int // what up makes
}

// activations are the functions that kernels have, by Transformers' names (activations.py: ACT2FN).
var activations = map[string]string{
	"silu": "silu", "swish": "silu", "gelu": "gelu", "relu": "relu", "tanh": "tanh",
	"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "gelu_python": "gelu",
}

func (writer *writer) mlpOf(layer int, op modelgraph.MLP) (core, error) {
	net := &mlp{gated: op.Gated, hidden: op.Hidden, activation: activations[op.Activation]}
	if net.activation == "" {
		return nil, unrunnable(&writer.graph.Layers[layer], "it has no kernel for activation %q (it has silu, gelu, gelu_new, gelu_pytorch_tanh, relu, tanh)", op.Activation)
	}
	if op.LayerScale {
		return nil, unrunnable(&writer.graph.Layers[layer], "it has no kernel for a layer scale")
	}
	names := [][]string{{"up_proj", "c_fc", "fc1", "intermediate.dense", "dense_h_to_4h", "fc_in"}}
	width := op.Hidden
	switch {
	case op.Gated && op.Fused:
		names, width = [][]string{{"gate_up_proj"}}, 2*op.Hidden
	case op.Gated:
		names = [][]string{{"gate_proj", "w1"}, {"up_proj", "w3"}}
	}
	for _, choice := range names {
		linear, err := writer.linearOf(layer, op.Dim, width, op.Transposed, choice...)
		if err != nil {
			return nil, err
		}
		net.up = append(net.up, linear)
	}
	var err error
	net.down, err = writer.linearOf(layer, op.Hidden, op.Dim, op.Transposed, "down_proj", "c_proj", "fc2", "output.dense", "dense_4h_to_h", "fc_out", "w2")
	return net, err
}

// inputs are gate and up, or the activation's input.
func (net *mlp) inputs(writer *writer, saved []int) []Operand {
	switch {
	case net.gated && len(net.up) == 1:
		return []Operand{writer.columns(in("gate", saved[0]), 0, net.hidden), writer.columns(in("up", saved[0]), net.hidden, net.hidden)}
	case net.gated:
		return []Operand{in("gate", saved[0]), in("up", saved[1])}
	}
	return []Operand{in("x", saved[0])}
}

// kernel is the name and the sizes of the activation's kernel.
func (net *mlp) kernel(writer *writer, suffix string) (string, []Dim) {
	name := "activate"
	if net.gated {
		name = "gate"
	}
	return name + suffix, []Dim{size("rows", writer.count), size("columns", net.hidden), word("activation", net.activation)}
}

func (net *mlp) forward(writer *writer, h int, y Operand, add ...Operand) {
	names := []string{"up"}
	if net.gated {
		names = []string{"gate", "up"}
	}
	if net.gated && len(net.up) == 1 {
		names = []string{"gate_up"}
	}
	saved := make([]int, len(net.up))
	for i, linear := range net.up {
		saved[i] = writer.saved(names[i], writer.dtype, writer.count, linear.out)
		linear.project(writer, in("a", h), out("d", saved[i]))
	}
	net.saved = saved
	net.down.project(writer, net.product(writer, "product", saved), y, add...)
}

// product is the input of down. Without a backward it overwrites the activation's input.
func (net *mlp) product(writer *writer, name string, saved []int) Operand {
	inputs := net.inputs(writer, saved)
	product := inputs[0]
	if writer.train {
		product = in("y", writer.temporary(name, writer.dtype, writer.count, net.hidden))
	}
	kernel, dims := net.kernel(writer, "")
	writer.kernel(kernel, dims, append(inputs, product.as("y").mode(modeWrite))...)
	return product
}

func (net *mlp) backward(writer *writer, dy int, normed func() int, dh func() (Operand, []Operand)) {
	net.down.learn(writer, net.product(writer, "product.again", net.saved), in("dy", dy))
	grads := net.gradients(writer, dy)
	h := normed()
	for i, linear := range net.up {
		linear.learn(writer, in("a", h), grads[i])
	}
	writer.backAll(net.up, grads, dh)
}

// gradients are the gradients of up's outputs. The product's gradient becomes up's in place; fused
// gate and up have one buffer for both.
func (net *mlp) gradients(writer *writer, dy int) []Operand {
	gradient := writer.temporary("up.gradient", writer.dtype, writer.count, net.hidden)
	net.down.back(writer, in("dy", dy), out("d", gradient))
	kernel, dims := net.kernel(writer, "_backward")
	switch {
	case net.gated && len(net.up) == 1:
		both := writer.temporary("gate_up.gradient", writer.dtype, writer.count, 2*net.hidden)
		writer.kernel(kernel, dims, append(net.inputs(writer, net.saved), in("dy", gradient), writer.columns(out("dgate", both), 0, net.hidden), writer.columns(out("dup", both), net.hidden, net.hidden))...)
		return []Operand{in("dy", both)}
	case net.gated:
		gate := writer.temporary("gate.gradient", writer.dtype, writer.count, net.hidden)
		writer.kernel(kernel, dims, append(net.inputs(writer, net.saved), in("dy", gradient), out("dgate", gate), out("dup", gradient))...)
		return []Operand{in("dy", gate), in("dy", gradient)}
	}
	writer.kernel(kernel, dims, append(net.inputs(writer, net.saved), in("dy", gradient), out("dx", gradient))...)
	return []Operand{in("dy", gradient)}
}
