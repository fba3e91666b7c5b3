package recipe

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

// core is a branch's work on the normed stream: attention, or a feed-forward network.
type core interface {
	// forward makes y (+ add) from h.
	forward(writer *writer, h int, y Operand, add ...Operand)
	// backward makes the gradients of its parameters and of h, into dh (+ add), from its
	// output's, dy. normed is h, made when it is asked for.
	backward(writer *writer, dy int, normed func() int, dh func() (Operand, []Operand))
}

// branch is stream + post(core(pre(stream))).
func (writer *writer) branch(next step, last bool) error {
	run, err := writer.coreOf(next.core)
	if err != nil {
		return err
	}
	var pre, post *norm
	if next.pre >= 0 {
		if pre, err = writer.normOf(next.pre); err != nil {
			return err
		}
	}
	if next.post >= 0 {
		if post, err = writer.normOf(next.post); err != nil {
			return err
		}
	}
	x := writer.from()
	h := x
	if pre != nil {
		h = writer.temporary("normed", writer.dtype, writer.count, writer.width)
		pre.forward(writer, x, h)
	}
	if post == nil {
		run.forward(writer, h, out("d", writer.to(last)), in("add", x))
	} else {
		a := writer.saved("branch", writer.dtype, writer.count, writer.width)
		run.forward(writer, h, out("d", a))
		post.forward(writer, a, writer.to(last), in("add", x))
	}
	if writer.train {
		writer.backs = append(writer.backs, func() { writer.branchBack(run, pre, post, h) })
	}
	return nil
}

// branchBack is backward of a branch: the stream's gradient continues
// unchanged, and what comes through the core is added to it.
func (writer *writer) branchBack(run core, pre, post *norm, h int) {
	flow := writer.gradient()
	dy := flow
	if post != nil {
		dy = writer.temporary("branch.gradient", writer.dtype, writer.count, writer.width)
		post.backward(writer, flow, dy)
	}
	if pre == nil {
		run.backward(writer, dy, func() int { return h }, func() (Operand, []Operand) { return out("d", writer.gone()), []Operand{in("add", flow)} })
		return
	}
	dh := -1
	run.backward(writer, dy, func() int { return pre.again(writer) }, func() (Operand, []Operand) {
		dh = writer.temporary("normed.gradient", writer.dtype, writer.count, writer.width)
		return out("d", dh), nil
	})
	pre.backward(writer, dh, writer.gone(), in("add", flow))
}

func (writer *writer) coreOf(layer int) (core, error) {
	switch op := writer.graph.Layers[layer].Op.(type) {
	case modelgraph.Attention:
		if err := writer.carries(layer, op.Dim); err != nil {
			return nil, err
		}
		return writer.attentionOf(layer, op)
	case modelgraph.MLP:
		if err := writer.carries(layer, op.Dim); err != nil {
			return nil, err
		}
		return writer.mlpOf(layer, op)
	}
	return nil, unrunnable(&writer.graph.Layers[layer], "it is no branch")
}

// carries refuses a layer of another width than the stream's.
func (writer *writer) carries(layer int, width int64) error {
	if width != writer.width {
		return unrunnable(&writer.graph.Layers[layer], "it is %d wide, and the hidden stream %d", width, writer.width)
	}
	return nil
}

// backAll makes the gradient of several projections' input: the first writes, the others add.
func (writer *writer) backAll(linears []*linear, dys []Operand, dh func() (Operand, []Operand)) {
	dx, add := dh()
	for i, linear := range linears {
		linear.back(writer, dys[i], dx, add...)
		add = []Operand{in("add", dx.Tensor)}
	}
}
