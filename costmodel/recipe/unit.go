package recipe

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// write writes the code of unit index.
func (m *model) write(unit *Unit, index int, steps []step) error {
	w := &writer{model: m, unit: index, names: make(map[string]int), copies: make(map[string]int), silent: len(steps) == 0}
	if err := w.layout(); err != nil {
		return err
	}
	w.regions.Passes = w.silent && m.workload.Mode != costmodel.Load
	if m.workload.Mode != costmodel.Load && !w.silent {
		if err := w.run(steps); err != nil {
			return err
		}
	}
	unit.bytes = w.bytes
	unit.Regions, unit.Code = w.regions, &w.code
	return nil
}

// run writes the passes.
func (w *writer) run(steps []step) error {
	w.pass, w.routine, w.count = Forward, &w.code.Forward, w.rows
	if err := w.forward(steps); err != nil {
		return err
	}
	if w.generates {
		w.pass, w.routine, w.count = Decode, &w.code.Decode, w.sequences
		if err := w.forward(steps); err != nil {
			return err
		}
	}
	if w.train {
		w.pass, w.routine, w.count = Backward, &w.code.Backward, w.rows
		w.flow = -1
		for _, back := range slices.Backward(w.backs) {
			back()
		}
		w.update()
	}
	w.measure()
	return w.unread()
}

// forward writes a pass of the stream through the unit.
func (w *writer) forward(steps []step) error {
	w.stream = -1
	for i, next := range steps {
		var err error
		last := i == len(steps)-1
		switch next.kind {
		case embedStep, addStep:
			err = w.embedding(next.core, last)
		case branchStep:
			err = w.branch(next, last)
		case normStep:
			err = w.alone(next.core, last)
		case linearStep:
			err = w.linear(next.core, last)
		case headStep:
			err = w.head(next.core)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// from is the stream as a step finds it.
func (w *writer) from() int {
	if w.stream < 0 {
		w.stream = w.message(Input)
	}
	return w.stream
}

// to is where a step puts the stream: the message where it is the last, else a
// tensor that backward reads. Without a backward every step changes the
// message in place.
func (w *writer) to(last bool) int {
	if last || !w.train {
		w.stream = w.message(Output)
	} else {
		w.stream = w.kept("stream", w.dtype, w.count, w.width)
	}
	return w.stream
}

// gradient is the stream's gradient as a step finds it on the way back, and
// gone where it puts it: from then on that is where it lies.
func (w *writer) gradient() int {
	if w.flow < 0 {
		w.flow = w.message(OutputGradient)
	}
	return w.flow
}

func (w *writer) gone() int {
	w.flow = w.message(InputGradient)
	return w.flow
}

// measure adds up the unit's regions from the tensors of its kernels.
func (w *writer) measure() {
	code, regions := &w.code, &w.regions
	code.Forward.Scratch = code.pack(Forward, code.Forward.Kernels)
	code.Backward.Scratch = code.pack(Backward, code.Backward.Kernels)
	code.Decode.Scratch = code.pack(Decode, code.Decode.Kernels)
	regions.Forward, regions.Backward, regions.Decode = code.Forward.Scratch, code.Backward.Scratch, code.Decode.Scratch
	for i := range code.Tensors {
		tensor := &code.Tensors[i]
		switch size := tensor.Bytes(); {
		case tensor.Class == Input && w.train && w.readBack(i):
			regions.Input = size
		case tensor.Class == Output && tensor.Name == string(Output):
			regions.Output = size
		case tensor.Class == Output:
			regions.Token = size
		}
	}
	if w.recomputes(w.unit) {
		code.Recompute.Kernels = code.again()
		regions.Remade, regions.Saved = regions.Saved, 0
		regions.Backward = regions.Remade + max(regions.Backward, regions.Forward)
		regions.Forward += regions.Remade
	}
	for _, routine := range []*Routine{&code.Forward, &code.Recompute, &code.Backward, &code.Decode, &code.Norms, &code.Step} {
		routine.add()
	}
}

// readBack reports a tensor that a kernel of backward reads.
func (w *writer) readBack(tensor int) bool {
	return w.code.Backward.touches(tensor)
}

func (routine *Routine) touches(tensor int) bool {
	for i := range routine.Kernels {
		for j := range routine.Kernels[i].Operands {
			if routine.Kernels[i].Operands[j].Tensor == tensor {
				return true
			}
		}
	}
	return false
}

// add adds up the routine's kernels.
func (routine *Routine) add() {
	work := &routine.Work
	for i := range routine.Kernels {
		kernel := &routine.Kernels[i]
		work.Kernels++
		work.Attention += kernel.Attention
		switch {
		case kernel.Products > 0 && kernel.Unaligned:
			work.Unaligned += kernel.Products
		case kernel.Products > 0:
			work.Products += kernel.Products
		case kernel.Attention == 0:
			work.Traffic += kernel.Bytes
		}
	}
}

// again are forward's kernels that make what backward reads, found from the
// last to the first: a kernel that writes nothing which is needed is left out.
func (code *Code) again() []Kernel {
	needed := make([]bool, len(code.Tensors))
	for i := range code.Tensors {
		needed[i] = code.Tensors[i].Class == Saved
	}
	var kernels []Kernel
	for _, kernel := range slices.Backward(code.Forward.Kernels) {
		makes := slices.ContainsFunc(kernel.Operands, func(operand Operand) bool { return operand.Mode != Read && needed[operand.Tensor] })
		if !makes {
			continue
		}
		for _, operand := range kernel.Operands {
			needed[operand.Tensor] = true
		}
		kernels = append(kernels, kernel)
	}
	slices.Reverse(kernels)
	return kernels
}

// alike is a unit before this one with the same code: the same steps of equal
// operations on parameters of the same names and shapes, none of them tied.
// Only the last few kinds are looked at.
func (m *model) alike(all [][]step, index int) int {
	const kinds = 4
	for back := 1; back <= min(index, 8*kinds); back++ {
		if other := index - back; m.same(&m.graph.Units[other], &m.graph.Units[index]) && slices.EqualFunc(all[other], all[index], func(a, b step) bool {
			shift := m.graph.Units[index].First - m.graph.Units[other].First
			return a.kind == b.kind && a.core+shift == b.core && (a.pre < 0) == (b.pre < 0) && (a.post < 0) == (b.post < 0)
		}) {
			return other
		}
	}
	return -1
}

func (m *model) same(a, b *modelgraph.Unit) bool {
	if a.End-a.First != b.End-b.First {
		return false
	}
	for i := range a.End - a.First {
		if !sameLayer(&m.graph.Layers[a.First+i], &m.graph.Layers[b.First+i], len(a.Name), len(b.Name)) {
			return false
		}
	}
	return true
}

func sameLayer(a, b *modelgraph.Layer, cutA, cutB int) bool {
	if a.Op != b.Op || a.Stream != b.Stream || len(a.Params) != len(b.Params) || len(a.Name)-cutA != len(b.Name)-cutB || len(a.Name) < cutA || a.Name[cutA:] != b.Name[cutB:] {
		return false
	}
	for j := range a.Params {
		s, t := &a.Params[j], &b.Params[j]
		if s.Name != t.Name || s.DType != t.DType || s.Owner != "" || t.Owner != "" || !slices.Equal(s.Shape, t.Shape) {
			return false
		}
	}
	return true
}
