package recipe

import "github.com/devmap-dev/devmap/modelgraph"

// mlp is down(act(gate(x)) · up(x)), or down(act(up(x))). Backward keeps what
// goes into the activation and makes its result again.
type mlp struct {
	up         []*linear // gate and up; one where they are fused, or not gated
	down       *linear
	gated      bool
	hidden     int64
	activation string
	kept       []int // what up makes
}

// activations are the functions that kernels have, by Transformers' names
// (activations.py: ACT2FN).
var activations = map[string]string{
	"silu": "silu", "swish": "silu", "gelu": "gelu", "relu": "relu",
	"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu_fast": "gelu_tanh", "gelu_python": "gelu",
}

func (w *writer) mlpOf(layer int, op modelgraph.MLP) (core, error) {
	m := &mlp{gated: op.Gated, hidden: op.Hidden, activation: activations[op.Activation]}
	if m.activation == "" {
		return nil, unrunnable(&w.graph.Layers[layer], "it has no kernel for activation %q (it has silu, gelu, gelu_new, gelu_pytorch_tanh, relu)", op.Activation)
	}
	if op.LayerScale {
		return nil, unrunnable(&w.graph.Layers[layer], "it has no kernel for a layer scale")
	}
	names := [][]string{{"up_proj", "c_fc", "fc1", "intermediate.dense", "dense_h_to_4h", "fc_in"}}
	width := op.Hidden
	switch {
	case op.Gated && op.Fused:
		names, width = [][]string{{"gate_up_proj"}}, 2*op.Hidden
	case op.Gated:
		names = [][]string{{"gate_proj", "w1"}, {"up_proj", "w3"}}
	}
	for _, any := range names {
		l, err := w.linearOf(layer, op.Dim, width, op.Transposed, any...)
		if err != nil {
			return nil, err
		}
		m.up = append(m.up, l)
	}
	var err error
	m.down, err = w.linearOf(layer, op.Hidden, op.Dim, op.Transposed, "down_proj", "c_proj", "fc2", "output.dense", "dense_4h_to_h", "fc_out", "w2")
	return m, err
}

// inputs are gate and up, or what the activation reads.
func (m *mlp) inputs(w *writer, kept []int) []Operand {
	switch {
	case m.gated && len(m.up) == 1:
		return []Operand{w.columns(in("gate", kept[0]), 0, m.hidden), w.columns(in("up", kept[0]), m.hidden, m.hidden)}
	case m.gated:
		return []Operand{in("gate", kept[0]), in("up", kept[1])}
	}
	return []Operand{in("x", kept[0])}
}

// kernel is the name and the sizes of the activation's kernel.
func (m *mlp) kernel(w *writer, suffix string) (string, []Dim) {
	name := "activate"
	if m.gated {
		name = "gate"
	}
	return name + suffix, []Dim{size("rows", w.count), size("columns", m.hidden), word("activation", m.activation)}
}

func (m *mlp) forward(w *writer, h int, y Operand, add ...Operand) {
	names := []string{"up"}
	if m.gated {
		names = []string{"gate", "up"}
	}
	if m.gated && len(m.up) == 1 {
		names = []string{"gate_up"}
	}
	kept := make([]int, len(m.up))
	for i, l := range m.up {
		kept[i] = w.kept(names[i], w.dtype, w.count, l.out)
		w.project(l, in("a", h), out("d", kept[i]))
	}
	m.kept = kept
	w.project(m.down, m.product(w, "product", kept), y, add...)
}

// product is what down reads. Without a backward it takes the place of what
// went into the activation.
func (m *mlp) product(w *writer, name string, kept []int) Operand {
	inputs := m.inputs(w, kept)
	product := inputs[0]
	if w.train {
		product = in("y", w.temporary(name, w.dtype, w.count, m.hidden))
	}
	kernel, dims := m.kernel(w, "")
	w.kernel(kernel, dims, append(inputs, product.as("y").mode(Write))...)
	return product
}

func (m *mlp) backward(w *writer, dy int, normed func() int, dh func() (Operand, []Operand)) {
	w.learn(m.down, m.product(w, "product.again", m.kept), in("dy", dy))
	grads := m.gradients(w, dy)
	h := normed()
	for i, l := range m.up {
		w.learn(l, in("a", h), grads[i])
	}
	w.backAll(m.up, grads, dh)
}

// gradients are those of what up makes. The gradient of the product turns in
// place into that of up; fused, both go where gate and up lie side by side.
func (m *mlp) gradients(w *writer, dy int) []Operand {
	gradient := w.temporary("up.gradient", w.dtype, w.count, m.hidden)
	w.back(m.down, in("dy", dy), out("d", gradient))
	kernel, dims := m.kernel(w, "_backward")
	switch {
	case m.gated && len(m.up) == 1:
		both := w.temporary("gate_up.gradient", w.dtype, w.count, 2*m.hidden)
		w.kernel(kernel, dims, append(m.inputs(w, m.kept), in("dy", gradient), w.columns(out("dgate", both), 0, m.hidden), w.columns(out("dup", both), m.hidden, m.hidden))...)
		return []Operand{in("dy", both)}
	case m.gated:
		gate := w.temporary("gate.gradient", w.dtype, w.count, m.hidden)
		w.kernel(kernel, dims, append(m.inputs(w, m.kept), in("dy", gradient), out("dgate", gate), out("dup", gradient))...)
		return []Operand{in("dy", gate), in("dy", gradient)}
	}
	w.kernel(kernel, dims, append(m.inputs(w, m.kept), in("dy", gradient), out("dx", gradient))...)
	return []Operand{in("dy", gradient)}
}
