package modelgraph

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// A Builder makes a graph from operations alone. The tensors of each layer follow from its op's
// dimensions ([Params]), so that the two cannot contradict each other. A layer's inputs must have
// the width that it takes. The first error is kept, and [Builder.Build] returns it.
//
// [New] makes models with encoders, towers or tensors of their own.
type Builder struct {
	Name  string
	DType DType // of all weights
	// Bias: linear layers in ops that are added from here on have a bias, except a [Head].
	Bias bool
	// Epsilon is that of the norms that [Builder.Decoder] adds from here on.
	Epsilon float64

	layers []Layer
	ties   [][]string
	unit   string         // of the block that is being added, "" between blocks
	blocks map[string]int // by path, how many Decoder added
	last   string         // the layer whose output is the hidden state so far
	fault  error
}

// Add adds a layer and returns its full name, which in a block begins with the block's name. The
// inputs are full names of layers, also of later ones: first the layer to transform, then the
// residual that is added to the result. Without inputs, the layer reads the one that was added
// before it, except that an [Embedding] reads the tokens and a [Rotary] nothing.
func (builder *Builder) Add(name string, op Op, inputs ...string) string {
	layer := Layer{Name: FullName(builder.unit, name), Op: op, Inputs: inputs, Unit: builder.unit}
	if len(inputs) == 0 {
		layer.Inputs = builder.before(op)
	}
	if err := checkDims(op); err != nil {
		builder.fail(placeError(fmt.Sprintf("layers[%d].op", len(builder.layers)), "%q: %v", layer.Name, err))
		return layer.Name
	}
	_, head := op.(Head)
	bias := builder.Bias && !head
	layer.Params = Params(op, func(string) bool { return bias })
	for i := range layer.Params {
		layer.Params[i].DType = builder.DType
	}
	if rotary, ok := op.(Rotary); ok {
		layer.Buffers = frequencies(rotary)
	} else {
		builder.last = layer.Name
	}
	builder.layers = append(builder.layers, layer)
	return layer.Name
}

// before returns what an op reads if no inputs are given.
func (builder *Builder) before(op Op) []string {
	switch op.(type) {
	case Embedding, Rotary:
		return []string{}
	}
	if builder.last == "" {
		return []string{}
	}
	return []string{builder.last}
}

// frequencies returns the buffers of a rotary embedding, which computes cosines and sines in fp32
// (modeling_rope_utils.py: inv_freq, original_inv_freq).
func frequencies(op Rotary) []Tensor {
	count := (op.HeadDim + 1) / 2
	return []Tensor{
		{Name: "inv_freq", Shape: []int64{count}, DType: F32},
		{Name: "original_inv_freq", Shape: []int64{count}, DType: F32},
	}
}

// Block gathers the layers that add adds into one wrap unit, which stays on
// one device.
func (builder *Builder) Block(name string, add func()) {
	if builder.unit != "" {
		builder.fail(placeError(fmt.Sprintf("layers[%d].unit", len(builder.layers)), "block %q lies inside block %q: end that one first", name, builder.unit))
		return
	}
	builder.unit = name
	add()
	builder.unit = ""
}

// Decoder adds blocks path.0, path.1 and so on; a later call continues the numbers. Each has
// attention and then a feed-forward ([MLP] or [MoE]), both after a norm and added to the residual
// stream. Names and order are those of Transformers (modeling_llama.py, LlamaDecoderLayer).
func (builder *Builder) Decoder(path string, blocks int, style NormStyle, attention Attention, feedForward Op) {
	if builder.blocks == nil {
		builder.blocks = make(map[string]int)
	}
	first := builder.blocks[path]
	builder.blocks[path] += blocks
	for i := range blocks {
		builder.decoder(fmt.Sprintf("%s.%d", path, first+i), Norm{Dim: attention.Dim, Style: style, Epsilon: builder.Epsilon}, attention, feedForward)
	}
}

func (builder *Builder) decoder(block string, norm Norm, attention Attention, feedForward Op) {
	residual, middle := builder.last, block+".self_attn"
	if residual == "" {
		builder.fail(placeError(fmt.Sprintf("layers[%d].inputs", len(builder.layers)), "block %q has nothing to read: add an Embedding before it", block))
		return
	}
	builder.Block(block, func() {
		builder.Add("self_attn", attention, block+".input_layernorm", residual)
		builder.Add("mlp", feedForward, block+".post_attention_layernorm", middle)
		builder.Add("input_layernorm", norm, residual)
		builder.Add("post_attention_layernorm", norm, middle)
	})
	builder.last = block + ".mlp"
}

// Tie shares the first tensor with the others. Tensors have their full names.
func (builder *Builder) Tie(tensors ...string) { builder.ties = append(builder.ties, tensors) }

// Build checks the model and returns its graph. Errors are [*SyntaxError].
func (builder *Builder) Build() (*Graph, error) {
	if builder.fault != nil {
		return nil, builder.fault
	}
	layers := slices.Clone(builder.layers) // New writes the owners of tied parameters into them
	for i := range layers {
		layers[i].Params = slices.Clone(layers[i].Params)
	}
	graph, err := New(builder.Name, layers, builder.ties)
	if err != nil {
		return nil, err
	}
	if err := graph.checkWidths(); err != nil {
		return nil, err
	}
	graph.DType = builder.DType
	return graph, nil
}

func (builder *Builder) fail(err error) {
	if builder.fault == nil {
		builder.fault = err
	}
}

// checkWidths compares the widths that layers take with those of their inputs. The first input is
// transformed, a second is added to the result.
func (graph *Graph) checkWidths() error {
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		takes, gives := widths(layer.Op)
		for j, want := range []int64{takes, gives} {
			if j >= len(layer.InputLayers) {
				break
			}
			from := &graph.Layers[layer.InputLayers[j]]
			if _, got := widths(from.Op); got > 0 && want > 0 && got != want {
				return placeError(fmt.Sprintf("layers[%d].inputs[%d]", i, j), "%q gives %d values a token, and %q takes %d: make their dimensions equal",
					from.Name, got, layer.Name, want)
			}
		}
	}
	return nil
}

// widths returns the values a token that an operation takes and gives; 0: any, or not known.
func widths(op Op) (takes, gives int64) {
	switch op := op.(type) {
	case Embedding:
		return 0, op.Dim
	case Norm:
		return op.Dim, op.Dim
	case Attention:
		return op.Dim, op.Dim
	case MLP:
		return op.Dim, op.Dim
	case MoE:
		return op.Dim, op.Dim
	case StateSpace:
		return op.Dim, op.Dim
	case Head:
		return op.Dim, op.Vocab
	case Linear:
		return op.In, op.Out
	case Conv:
		return 0, op.Out
	}
	return 0, 0
}

// checkDims returns an error for an op that lacks a dimension which its kind needs, or whose
// dimensions contradict each other.
func checkDims(op Op) error {
	switch op := op.(type) {
	case nil:
		return fmt.Errorf("there is no op: give one of this package's")
	case Parameter, Opaque:
		return fmt.Errorf("op %s has no dimensions that tensors follow from: give the tensors to New", op.kind())
	case Attention:
		if op.KVHeads > 0 && op.Heads%op.KVHeads != 0 {
			return fmt.Errorf("op attention: %d KV heads do not divide %d heads", op.KVHeads, op.Heads)
		}
		if op.RopeDim > op.HeadDim {
			return fmt.Errorf("op attention: rope_dim %d is more than head_dim %d", op.RopeDim, op.HeadDim)
		}
	case MoE:
		if op.TopK > op.Experts {
			return fmt.Errorf("op moe: a token cannot go to %d of %d experts", op.TopK, op.Experts)
		}
	}
	value := reflect.ValueOf(op)
	if value.Kind() != reflect.Struct {
		return nil // New says what is wrong with it
	}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		needed := value.Field(i).Kind() == reflect.Int64 && !strings.Contains(field.Tag.Get("json"), "omitzero")
		if needed && value.Field(i).Int() == 0 {
			return fmt.Errorf("op %s needs %s: it is 0", op.kind(), fieldName(field))
		}
	}
	return nil
}
