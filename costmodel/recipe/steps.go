package recipe

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// step is one change of the hidden stream, by the indexes of its layers; -1:
// there is none. A branch is core with its norms, added to the stream.
type step struct {
	kind            stepKind
	pre, core, post int
}

type stepKind int

const (
	embedStep  stepKind = iota // rows of a table become the stream
	addStep                    // rows of a table are added to it
	branchStep                 // attention or a feed-forward network is added to it
	normStep                   // it is normalised
	linearStep                 // it is projected
	headStep                   // it becomes logits, and a loss
)

// parser follows the hidden stream through the layers.
type parser struct {
	*model
	stream int // the layer that made it last; -1 before the first
}

// steps are those of every unit.
func (m *model) steps() ([][]step, error) {
	p := parser{model: m, stream: -1}
	all := make([][]step, len(m.graph.Units))
	for i := range m.graph.Units {
		var err error
		if all[i], err = p.unit(&m.graph.Units[i]); err != nil {
			return nil, err
		}
	}
	return all, p.ends()
}

func (p *parser) unit(unit *modelgraph.Unit) ([]step, error) {
	var steps []step
	exec := unit.Exec
	for k := 0; k < len(exec); k++ {
		layer := &p.graph.Layers[exec[k]]
		if p.quiet(exec[k]) {
			continue
		}
		if err := p.onStream(layer); err != nil {
			return nil, err
		}
		next := step{pre: -1, core: exec[k], post: -1}
		var used int
		var err error
		switch layer.Op.(type) {
		case modelgraph.Embedding:
			next.kind, err = p.table(exec[k])
		case modelgraph.Norm:
			if p.branches(exec[k:]) {
				next.pre = exec[k]
				next.kind, next.core = branchStep, exec[k+1]
				used, err = p.branch(&next, exec[k+1:])
			} else {
				next.kind, err = normStep, p.reads(exec[k])
			}
		case modelgraph.Attention, modelgraph.MLP:
			next.kind = branchStep
			used, err = p.branch(&next, exec[k:])
			used--
		case modelgraph.Linear:
			next.kind, err = linearStep, p.reads(exec[k])
		case modelgraph.Head:
			next.kind, err = headStep, p.reads(exec[k])
		default:
			err = p.unknown(layer)
		}
		if err != nil {
			return nil, err
		}
		k += used
		steps = append(steps, next)
		p.stream = max(next.core, -1)
		if next.post >= 0 {
			p.stream = next.post
		}
	}
	return steps, nil
}

// quiet reports layers that run nothing: rotary positions are worked out
// where they are used, and a tower without images is not called.
func (m *model) quiet(index int) bool {
	layer := &m.graph.Layers[index]
	if layer.Stream.Kind == modelgraph.Image && m.workload.Images == 0 {
		return true
	}
	switch layer.Op.(type) {
	case modelgraph.Rotary:
		return true
	case modelgraph.Opaque, modelgraph.Parameter:
		return m.storage(index)
	}
	return false
}

// inputs are the layers that a layer reads, without those that do not run.
func (m *model) inputs(index int) []int {
	var ins []int
	for _, j := range m.graph.Layers[index].InputLayers() {
		if !m.quiet(j) {
			ins = append(ins, j)
		}
	}
	return ins
}

// reads checks that a layer transforms the stream and nothing else.
func (p *parser) reads(index int) error {
	ins := p.inputs(index)
	if len(ins) != 1 || ins[0] != p.stream {
		return p.notAChain(index)
	}
	return nil
}

func (p *parser) table(index int) (stepKind, error) {
	ins := p.inputs(index)
	if p.stream < 0 && len(ins) == 0 {
		return embedStep, nil
	}
	return addStep, p.reads(index)
}

// branches reports that layers[0], a norm, stands before the core of a branch:
// one that is not added to the norm itself, which then is the stream (BERT).
func (p *parser) branches(layers []int) bool {
	if len(layers) < 2 {
		return false
	}
	switch p.graph.Layers[layers[1]].Op.(type) {
	case modelgraph.Attention, modelgraph.MLP:
	default:
		return false
	}
	ins := p.inputs(layers[1])
	if len(ins) == 1 && len(layers) > 2 {
		ins = append(ins, p.inputs(layers[2])...) // of the norm behind, maybe
	}
	return len(ins) > 0 && ins[0] == layers[0] && !slices.Contains(ins[1:], layers[0])
}

// branch completes a branch whose core is layers[0], and returns how many of
// the layers are its.
func (p *parser) branch(next *step, layers []int) (int, error) {
	next.core = layers[0]
	from := p.stream
	if next.pre >= 0 {
		if err := p.reads(next.pre); err != nil {
			return 0, err
		}
		from = next.pre
	}
	ins := p.inputs(next.core)
	if len(ins) == 2 && ins[0] == from && ins[1] == p.stream {
		return 1, nil
	}
	if len(ins) == 1 && ins[0] == from && len(layers) > 1 {
		if op, ok := p.graph.Layers[layers[1]].Op.(modelgraph.Norm); ok && op.Post {
			if ins := p.inputs(layers[1]); len(ins) == 2 && ins[0] == next.core && ins[1] == p.stream {
				next.post = layers[1]
				return 2, nil
			}
		}
	}
	return 0, p.notAChain(next.core)
}
