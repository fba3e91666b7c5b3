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
	poolStep                   // the first token of every sequence is, and is what the caller gets
	headStep                   // it becomes logits, and a loss
)

// parser follows the hidden stream through the layers.
type parser struct {
	*model
	stream int // the layer that made it last; -1 before the first
}

// steps are the steps of every unit.
func (model *model) steps() ([][]step, error) {
	parser := parser{model: model, stream: -1}
	all := make([][]step, len(model.graph.Units))
	for i := range model.graph.Units {
		var err error
		if all[i], err = parser.unit(&model.graph.Units[i]); err != nil {
			return nil, err
		}
	}
	return all, parser.ends()
}

func (parser *parser) unit(unit *modelgraph.Unit) ([]step, error) {
	var steps []step
	exec := unit.Exec
	for k := 0; k < len(exec); k++ {
		layer := &parser.graph.Layers[exec[k]]
		if parser.quiet(exec[k]) {
			continue
		}
		if err := parser.onStream(layer); err != nil {
			return nil, err
		}
		next := step{pre: -1, core: exec[k], post: -1}
		var used int
		var err error
		switch layer.Op.(type) {
		case modelgraph.Embedding:
			next.kind, err = parser.table(exec[k])
		case modelgraph.Norm:
			if parser.branches(exec[k:]) {
				if err := parser.attends(exec[k+1]); err != nil {
					return nil, err
				}
				next.pre = exec[k]
				next.kind, next.core = branchStep, exec[k+1]
				used, err = parser.branch(&next, exec[k+1:])
			} else {
				next.kind, err = normStep, parser.reads(exec[k])
			}
		case modelgraph.Attention, modelgraph.MLP:
			if err := parser.attends(exec[k]); err != nil {
				return nil, err
			}
			next.kind = branchStep
			used, err = parser.branch(&next, exec[k:])
			used--
		case modelgraph.Linear:
			next.kind, err = parser.projection(exec[k])
		case modelgraph.Head:
			next.kind, err = headStep, parser.reads(exec[k])
		default:
			err = parser.unknown(layer)
		}
		if err != nil {
			return nil, err
		}
		k += used
		steps = append(steps, next)
		parser.stream = max(next.core, -1)
		if next.post >= 0 {
			parser.stream = next.post
		}
	}
	return steps, nil
}

// reads checks that a layer transforms the stream and nothing else.
func (parser *parser) reads(index int) error {
	ins := parser.inputs(index)
	if len(ins) != 1 || ins[0] != parser.stream {
		return parser.notAChain(index)
	}
	return nil
}

func (parser *parser) table(index int) (stepKind, error) {
	ins := parser.inputs(index)
	if parser.stream < 0 && len(ins) == 0 {
		return embedStep, nil
	}
	return addStep, parser.reads(index)
}

func (parser *parser) projection(index int) (stepKind, error) {
	if parser.pools(index) {
		return poolStep, parser.reads(index)
	}
	return linearStep, parser.reads(index)
}

// branches reports that layers[0], a norm, precedes the core of a branch. If the core is added to
// the norm itself, that is the stream (BERT).
func (parser *parser) branches(layers []int) bool {
	if len(layers) < 2 {
		return false
	}
	switch parser.graph.Layers[layers[1]].Op.(type) {
	case modelgraph.Attention, modelgraph.MLP:
	default:
		return false
	}
	ins := parser.inputs(layers[1])
	if len(ins) == 1 && len(layers) > 2 {
		ins = append(ins, parser.inputs(layers[2])...) // of the next norm, maybe
	}
	return len(ins) > 0 && ins[0] == layers[0] && !slices.Contains(ins[1:], layers[0])
}

// branch completes a branch with layers[0] as its core, and returns its number of layers.
func (parser *parser) branch(next *step, layers []int) (int, error) {
	next.core = layers[0]
	from := parser.stream
	if next.pre >= 0 {
		if err := parser.reads(next.pre); err != nil {
			return 0, err
		}
		from = next.pre
	}
	ins := parser.inputs(next.core)
	if len(ins) == 2 && ins[0] == from && ins[1] == parser.stream {
		return 1, nil
	}
	if len(ins) == 1 && ins[0] == from && len(layers) > 1 {
		if op, ok := parser.graph.Layers[layers[1]].Op.(modelgraph.Norm); ok && op.Post {
			if ins := parser.inputs(layers[1]); len(ins) == 2 && ins[0] == next.core && ins[1] == parser.stream {
				next.post = layers[1]
				return 2, nil
			}
		}
	}
	return 0, parser.notAChain(next.core)
}
