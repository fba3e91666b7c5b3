package reserve

import (
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/modelgraph"
)

// parse is a model's layers on their way to a [Decoder].
type parse struct {
	*Decoder
	readers map[int][]int // of each layer, by the layer that they read first
	stream  int           // the layer whose output is the residual stream
	norm    int           // the norm that waits for its body, or -1
	unit    int           // of the last block
}

// body puts the layers together in the order they run.
func (out *Decoder) body(order []int) bool {
	state := parse{Decoder: out, readers: make(map[int][]int), stream: -1, norm: -1, unit: -1}
	for _, i := range order {
		if in := out.layers.Layers[i].InputLayers; len(in) > 0 {
			state.readers[in[0]] = append(state.readers[in[0]], i)
		}
	}
	for _, i := range order {
		if !state.layer(i) {
			return false
		}
	}
	out.repeat()
	return out.Head.Linear != nil && len(out.Blocks) > 0
}

// repeat runs blocks as often as their layers (modeling_albert.py, AlbertTransformer).
func (out *Decoder) repeat() {
	var all []replay.Block
	for _, block := range out.Blocks {
		for range out.layers.Layers[block.Halves[0].BodyIndex].Times() {
			all = append(all, block)
		}
	}
	out.Blocks = all
}

func (state *parse) layer(i int) bool {
	out, layer := state.Decoder, &state.layers.Layers[i]
	if out.Head.Linear != nil && len(layer.Params) > 0 {
		return false // something after the head
	}
	switch op := layer.Op.(type) {
	case modelgraph.Rotary:
		if op.Rows || op.Packed {
			return false
		}
		out.Rotary, out.rotary = op.HeadDim*layer.Shape.Length, i
		return true
	case modelgraph.Opaque: // a bias that is another layer's, or buffers
		return true
	case modelgraph.Embedding:
		return state.table(i, &op)
	case modelgraph.Norm:
		return state.normal(i, op)
	case modelgraph.Linear:
		return state.linear(i, &op)
	case modelgraph.Head:
		return (out.Norm.Weight != nil || out.bare()) && state.norm < 0 && out.head(i, op)
	}
	return state.half(i, layer.Op)
}

// table is the tokens' table, or a further one with rows to add.
func (state *parse) table(i int, op *modelgraph.Embedding) bool {
	layer := &state.layers.Layers[i]
	out, weight := state.Decoder, state.param(layer, "weight")
	if weight == nil && len(layer.Params) == 1 { // modules of several tables (modeling_bert.py, BertEmbeddings)
		weight = state.param(layer, layer.Params[0].Name)
	}
	switch {
	case weight == nil || len(out.Blocks) > 0:
		return false
	case state.stream < 0:
		out.Width = op.Dim
		out.Embedding = replay.Embedding{Index: i, Vocab: op.Vocab, Scaled: op.Scaled, Dropout: op.Dropout, Weight: weight}
	default:
		out.Embedding.More, out.wider = append(out.Embedding.More, weight), true
		out.Embedding.Dropout = out.Embedding.Dropout || op.Dropout
	}
	state.stream = i
	return true
}

// normal is a norm before a layer or after it, of the embeddings or before the head.
func (state *parse) normal(i int, op modelgraph.Norm) bool {
	norm, ok := state.Decoder.norm(i, op)
	in := state.layers.Layers[i].InputLayers
	if !ok || op.Eager || op.OwnInput || len(in) == 0 {
		return false
	}
	last := state.lastHalf()
	residual, reads := state.readsTwice(i)
	switch {
	case last == nil:
		return state.early(i, &op, norm, residual, reads)
	case state.Head.Dense != nil:
		state.Head.DenseNorm, state.wider = norm, true
		return true
	case state.follows(last, &op, in[0], residual, reads):
		if last.After != nil || last.BodyIndex != in[0] {
			return false
		}
		last.After, last.AfterIndex, last.Sum = norm, i, !op.Post
		state.wider, state.stream = state.wider || last.Sum || norm.Fused, i
		return true
	case reads:
		return state.wait(i, in[0])
	}
	state.Norm, state.NormIndex = *norm, i
	return state.stream == in[0]
}

// early is a norm before the first body: of the embeddings, or the first body's.
func (state *parse) early(i int, op *modelgraph.Norm, norm *replay.Norm, residual, reads bool) bool {
	from := state.layers.Layers[i].InputLayers[0]
	switch {
	case (residual || !reads) && state.stream == from:
		state.Embedding.Norm, state.Embedding.Dropout = norm, state.Embedding.Dropout || op.Dropout
		state.wider, state.stream = true, i
		return true
	case reads:
		return state.wait(i, from)
	}
	return false
}

// lastHalf is the last block's last half, or nil.
func (state *parse) lastHalf() *replay.Half {
	blocks := len(state.Blocks)
	if blocks == 0 {
		return nil
	}
	halves := &state.Blocks[blocks-1].Halves
	if halves[1].Body == nil {
		return &halves[0]
	}
	return &halves[1]
}

// follows reports a norm of a half's body's result. It is of the sum with the stream if the next
// body's residual is the norm's output, or all blocks are so.
func (state *parse) follows(last *replay.Half, op *modelgraph.Norm, from int, residual, reads bool) bool {
	return op.Post || last.BodyIndex == from && last.After == nil && (residual || !reads && state.Blocks[0].Halves[0].Sum)
}

// readsTwice reports a body that reads a norm, and that its residual is the norm's output.
func (state *parse) readsTwice(norm int) (residual, reads bool) {
	for _, reader := range state.readers[norm] {
		layer := &state.layers.Layers[reader]
		switch layer.Op.(type) {
		case modelgraph.Attention, modelgraph.MLP, modelgraph.StateSpace:
			in := layer.InputLayers
			return len(in) > 1 && in[0] == in[1], true
		}
	}
	return false, false
}

// wait lets a norm wait for its body. It reads the stream unless layers are parallel.
func (state *parse) wait(i, from int) bool {
	if state.norm >= 0 || from != state.stream {
		return false
	}
	state.norm = i
	return true
}

// linear is a projection between the embeddings and the blocks, or before the head.
func (state *parse) linear(i int, op *modelgraph.Linear) bool {
	linears := state.linears(i)
	if len(linears) != 1 {
		return false
	}
	if state.wider = true; len(state.Blocks) == 0 {
		state.Embedding.Width, state.Embedding.Map, state.Width, state.stream = op.In, linears[0], op.Out, i
		return op.Activation == ""
	}
	if state.Norm.Weight == nil && !state.bare() {
		return false
	}
	state.Head.Dense = &replay.MLP{Hidden: op.Out, Gate: linears[0], Extra: ops.ActivationTensors(op.Activation) - 1}
	return true
}

// bare reports blocks with a last norm that is also the model's.
func (out *Decoder) bare() bool {
	out.NormIndex = out.HeadIndex
	return len(out.Blocks) > 0 && out.Blocks[len(out.Blocks)-1].Halves[1].Sum
}

// half is attention or another layer with an output added to the stream.
func (state *parse) half(i int, op modelgraph.Op) bool {
	out, layer := state.Decoder, &state.layers.Layers[i]
	half := replay.Half{BodyIndex: i, NormIndex: i}
	in := layer.InputLayers
	switch {
	case state.norm >= 0 && len(in) > 0 && in[0] == state.norm:
		op, _ := state.layers.Layers[state.norm].Op.(modelgraph.Norm)
		made, ok := out.norm(state.norm, op)
		if !ok {
			return false
		}
		half.Norm, half.NormIndex = made, state.norm
	case state.norm >= 0 || len(in) == 0 || in[0] != state.stream:
		return false
	default:
		out.wider = true
	}
	state.norm = -1
	body, ok := out.bodyOf(i, op, &half)
	if !ok {
		return false
	}
	half.Body, state.stream = body, i
	if blocks := len(out.Blocks); layer.UnitIndex == state.unit && blocks > 0 && out.Blocks[blocks-1].Halves[1].Body == nil {
		out.Blocks[blocks-1].Halves[1] = half
		return true
	} else if layer.UnitIndex == state.unit {
		return false
	}
	state.unit = layer.UnitIndex
	out.Blocks = append(out.Blocks, replay.Block{Halves: [2]replay.Half{half}})
	return true
}

func (out *Decoder) bodyOf(i int, op modelgraph.Op, half *replay.Half) (replay.Layer, bool) {
	switch op := op.(type) {
	case modelgraph.Attention:
		half.Dropout, out.Caches = op.Dropout, !op.Bidirectional && !op.Uncached && !out.layers.Train
		if body, ok := out.attention(i, &op); ok {
			return body, true
		}
	case modelgraph.MLP:
		half.Dropout = op.Dropout
		if body, ok := out.mlp(i, &op); ok {
			return body, true
		}
	case modelgraph.StateSpace:
	default:
		return nil, false
	}
	return out.other(i)
}

// other is a layer by its linear layers, if these have nearly all of its parameters.
func (out *Decoder) other(i int) (replay.Layer, bool) {
	layer := &out.layers.Layers[i]
	if _, attends := layer.Op.(modelgraph.Attention); attends && !out.layers.Train && layers.Taped(out.layers) {
		return nil, false // the tape has its other tensors, whose blocks are new in a prefill
	}
	shape := layer.Shape
	shape.Followed = true
	linears, cost := out.linears(i), ops.Of(layer.Op, &shape)
	if len(linears) == 0 || !cost.Known {
		return nil, false
	}
	step := &cost.Memory
	out.wider = true
	each := shape.Tokens * ops.ComputeBytes(out.layers.Rules.Compute)
	body := &replay.Other{Linears: linears, Width: linears[0].In}
	var weights, inputs, widest int64
	for k, linear := range linears {
		if linear.Weight == nil {
			return nil, false
		}
		weights += linear.Weight.Numel
		widest = max(widest, linear.Out*each)
		if k == len(linears)-1 || linear.In != body.Width {
			inputs += linear.In * each
		}
	}
	var all int64
	for j := range layer.Params {
		all += layer.Params[j].Numel
	}
	left := step.Saved - inputs
	if op, ok := layer.Op.(modelgraph.Attention); ok {
		widest = op.Heads * op.HeadDim * each
		for _, size := range ops.Scores(op, &shape) {
			body.Saved, left = append(body.Saved, size), left-size
		}
	}
	for ; left >= 1<<20; left -= widest {
		body.Saved = append(body.Saved, min(left, widest))
	}
	if !out.layers.Train {
		body.Saved = nil
	}
	body.Work = max(0, step.Backward-step.BackwardGrads)
	return body, 100*weights >= 98*all
}
