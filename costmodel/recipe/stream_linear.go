package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// linear is a projection of the stream, in inference.
func (writer *writer) linear(layer int, last bool) error {
	op, _ := writer.graph.Layers[layer].Op.(modelgraph.Linear)
	at := &writer.graph.Layers[layer]
	switch {
	case op.Pooled:
		return unrunnable(at, "it runs every token of the stream, not one a sequence")
	case writer.train:
		return unrunnable(at, "it has no backward for a linear layer outside a block")
	case op.Out != op.In || op.In != writer.width:
		return unrunnable(at, "it makes %d values of %d, and the hidden stream is %d wide", op.Out, op.In, writer.width)
	}
	linear, activation, err := writer.projection(layer, &op)
	if err != nil {
		return err
	}
	// A product does not overwrite its inputs.
	made := writer.temporary("projected", writer.dtype, writer.count, op.Out)
	linear.project(writer, in("a", writer.from()), out("d", made))
	name, dims := "copy", []Dim{size("rows", writer.count), size("columns", op.Out)}
	if activation != "" {
		name, dims = "activate", append(dims, word("activation", activation))
	}
	writer.kernel(name, dims, in("x", made), out("y", writer.to(last)))
	return nil
}

// projection finds a projection of the stream, and the activation after it, if any.
func (writer *writer) projection(layer int, op *modelgraph.Linear) (projection *linear, activation string, err error) {
	activation, known := activations[op.Activation]
	if op.Activation != "" && !known {
		return nil, "", unrunnable(&writer.graph.Layers[layer], "it has no kernel for activation %q", op.Activation)
	}
	projection, err = writer.linearOf(layer, op.In, op.Out, false, "")
	return projection, activation, err
}

// pools reports a pooler: a final projection of one token a sequence (modeling_bert.py,
// BertPooler).
func (model *model) pools(layer int) bool {
	model.note()
	op, ok := model.graph.Layers[layer].Op.(modelgraph.Linear)
	return ok && op.Pooled && !model.read[layer]
}

// pool projects the first token of every sequence.
func (writer *writer) pool(layer int) error {
	op, _ := writer.graph.Layers[layer].Op.(modelgraph.Linear)
	at := &writer.graph.Layers[layer]
	switch {
	case writer.train:
		return refuse("mode", costmodel.Train, "the model ends in a pooler (%q), which has no loss; %v runs it", at.Name, costmodel.Set("mode", costmodel.Infer))
	case writer.generates:
		return refuse("new_tokens", writer.workload.NewTokens, "the model ends in a pooler (%q), which makes no logits; %v runs it once", at.Name, costmodel.Set("new_tokens", 0))
	case op.In != writer.width:
		return unrunnable(at, "it reads %d values, and the hidden stream is %d wide", op.In, writer.width)
	}
	linear, activation, err := writer.projection(layer, &op)
	if err != nil {
		return err
	}
	first := writer.temporary("first", writer.dtype, writer.sequences, op.In)
	writer.kernel("first", []Dim{size("sequences", writer.sequences), size("seq", writer.seq), size("columns", op.In)}, in("x", writer.from()), out("y", first)).Bytes = float64(2 * writer.sequences * op.In * bytesOf(writer.dtype))
	pooled := writer.shared(&writer.regions.Result, Tensor{Name: "pooled", Class: classResult, DType: writer.dtype, Rows: writer.sequences, Columns: op.Out})
	linear.project(writer, in("a", first), out("d", pooled))
	if activation != "" {
		writer.kernel("activate", []Dim{size("rows", writer.sequences), size("columns", op.Out), word("activation", activation)}, in("x", pooled), out("y", pooled))
	}
	return nil
}
