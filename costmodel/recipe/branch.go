package recipe

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

// core is what a branch does with the normed stream: attention, or a
// feed-forward network.
type core interface {
	// forward makes y (+ add) from h.
	forward(w *writer, h int, y Operand, add ...Operand)
	// backward makes the gradients of its parameters and of h, into dh (+ add), from its
	// output's, dy. normed is h, made when it is asked for.
	backward(w *writer, dy int, normed func() int, dh func() (Operand, []Operand))
}

// branch is stream + post(core(pre(stream))).
func (w *writer) branch(next step, last bool) error {
	run, err := w.coreOf(next.core)
	if err != nil {
		return err
	}
	var pre, post *norm
	if next.pre >= 0 {
		if pre, err = w.normOf(next.pre); err != nil {
			return err
		}
	}
	if next.post >= 0 {
		if post, err = w.normOf(next.post); err != nil {
			return err
		}
	}
	x := w.from()
	h := x
	if pre != nil {
		h = w.temporary("normed", w.dtype, w.count, w.width)
		w.normalise(pre, x, h)
	}
	if post == nil {
		run.forward(w, h, out("d", w.to(last)), in("add", x))
	} else {
		a := w.kept("branch", w.dtype, w.count, w.width)
		run.forward(w, h, out("d", a))
		w.normalise(post, a, w.to(last), in("add", x))
	}
	if w.train {
		w.backs = append(w.backs, func() { w.branchBack(run, pre, post, h) })
	}
	return nil
}

// branchBack is backward of a branch: the stream's gradient goes on unchanged,
// and what comes through the core is added to it.
func (w *writer) branchBack(run core, pre, post *norm, h int) {
	flow := w.gradient()
	dy := flow
	if post != nil {
		dy = w.temporary("branch.gradient", w.dtype, w.count, w.width)
		w.normBack(post, flow, dy)
	}
	if pre == nil {
		run.backward(w, dy, func() int { return h }, func() (Operand, []Operand) { return out("d", w.gone()), []Operand{in("add", flow)} })
		return
	}
	dh := -1
	run.backward(w, dy, func() int { return w.again(pre) }, func() (Operand, []Operand) {
		dh = w.temporary("normed.gradient", w.dtype, w.count, w.width)
		return out("d", dh), nil
	})
	w.normBack(pre, dh, w.gone(), in("add", flow))
}

func (w *writer) coreOf(layer int) (core, error) {
	switch op := w.graph.Layers[layer].Op.(type) {
	case modelgraph.Attention:
		if err := w.carries(layer, op.Dim); err != nil {
			return nil, err
		}
		return w.attentionOf(layer, op)
	case modelgraph.MLP:
		if err := w.carries(layer, op.Dim); err != nil {
			return nil, err
		}
		return w.mlpOf(layer, op)
	}
	return nil, unrunnable(&w.graph.Layers[layer], "it is no branch")
}

// carries refuses a layer of another width than the stream's.
func (w *writer) carries(layer int, width int64) error {
	if width != w.width {
		return unrunnable(&w.graph.Layers[layer], "it is %d wide, and the hidden stream %d", width, w.width)
	}
	return nil
}

// backAll makes the gradient of what several projections read: the first
// writes it, the others add to it.
func (w *writer) backAll(linears []*linear, dys []Operand, dh func() (Operand, []Operand)) {
	dx, add := dh()
	for i, l := range linears {
		w.back(l, dys[i], dx, add...)
		add = []Operand{in("add", dx.Tensor)}
	}
}
