package paged

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Model is what a rank's memory depends on.
type Model struct {
	Name, Family, Class string
	Layers              []Layer
	First               Weights // before the layers: embeddings, towers
	Last                Weights // after the layers: the norm and the head
	// Table is the token table if the head shares it. The last stage of several has it once more.
	Table      Weights
	Rope       int64 // bytes of the tables of rotary positions, on each rank
	Element    int64 // bytes of a number of activations
	Width      int64 // of the hidden state
	Vocabulary int64
	Heads      int64 // of queries, in each layer
	KeyHeads   int64 // the most of a layer
	Experts    int64 // of a layer, the most; 0: none
	Trained    int64 // the longest context of the config; 0: unknown
	Tower      bool  // it has layers for images or sound
	// TowerLayers and TowerWidth are of a tower of images.
	TowerLayers, TowerWidth int64
	Quantized               string

	stored modelgraph.DType // of the config
}

// Layer is a decoder layer.
type Layer struct {
	Weights Weights
	Cache   Cache // on one rank without tensor parallelism; its Block is not set
	// FeedForward is the width of its feed-forward, both halves of a gated one counted.
	FeedForward int64
	// Routed are the experts of a token.
	Routed int64
	// ExpertWidth is the width of an expert's feed-forward.
	ExpertWidth int64
	// Read is the part of its experts that a token reads.
	Read float64
	// Unpacked are bytes of projections that the engine also has in the type of activations (the
	// latent's, if it is quantised).
	Unpacked int64
	// Expanded are the numbers of a token's keys without rotation and values, of all heads, if its cache
	// has a latent.
	Expanded int64

	// Chunked: a recurrent mixer that is computed in chunks (Mamba-2, delta rules).
	Chunked bool
	// Zeros are the bytes of packed zero points, which Machete has in 16 bits (linear/mixed_precision/machete.py).
	Zeros int64
	Delta bool // a delta rule

	widths []int64 // of feed-forwards and states, which ranks of tensor parallelism share
}

// FromGraph makes a model whose activations have so many bytes a number. The error names what the
// engines' memory needs and the graph lacks.
func FromGraph(graph *modelgraph.Graph, element int64) (*Model, error) {
	model := &Model{Name: graph.Name, Family: graph.Family, Class: graph.Class, Element: element, Trained: graph.MaxSeq, Quantized: graph.Quantized, stored: graph.DType}
	if graph.DType == modelgraph.DType(0) {
		model.stored = modelgraph.F32 // without a type a config means fp32
	}
	if model.Trained == 0 {
		model.Trained = 2048 // config/model.py, _get_and_verify_max_len
	}
	first, end := decoder(graph)
	if first < 0 {
		return nil, fmt.Errorf("%q has no decoder layers whose attention is known", graph.Name)
	}
	tables := map[rope]bool{}
	for i := range graph.Units {
		unit := &graph.Units[i]
		layers := graph.Layers[unit.First:unit.End]
		switch {
		case i >= first && i < end && unit.Kind == "decoder-layer":
			layer, err := model.layer(unit.Name, layers)
			if err != nil {
				return nil, err
			}
			model.Layers = append(model.Layers, layer)
			ropes(tables, layers)
		case i >= end && unit.Kind != "tower" && unit.Kind != "embedding":
			model.outside(&model.Last, layers)
		default:
			model.tower(unit.Kind, layers)
			model.outside(&model.First, layers)
		}
	}
	if model.Vocabulary == 0 {
		return nil, fmt.Errorf("%q has no head that makes logits", graph.Name)
	}
	for table := range tables {
		model.Rope += table.positions(model) * table.width * model.Element
	}
	return model, nil
}

// decoder is the range of units from the first decoder layer to the last; -1: there is none.
func decoder(graph *modelgraph.Graph) (first, end int) {
	first = slices.IndexFunc(graph.Units, func(unit modelgraph.Unit) bool { return unit.Kind == "decoder-layer" })
	for i := range graph.Units {
		if graph.Units[i].Kind == "decoder-layer" {
			end = i + 1
		}
	}
	return first, end
}

// tower notes a unit outside the decoder that works on images or sound.
func (model *Model) tower(kind string, layers []modelgraph.Layer) {
	if kind != "tower" && kind != "encoder-layer" {
		return
	}
	model.Tower = true
	for i := range layers {
		if op, ok := layers[i].Op.(modelgraph.Attention); ok {
			model.TowerLayers++
			model.TowerWidth = op.Dim
		}
	}
}

// rope is a table of cosines and sines, which layers with the same rotation share
// (rotary_embedding/__init__.py, get_rope).
type rope struct {
	rotation modelgraph.Rotation
	width    int64
}

// positions are the rows of a table. Linear scaling has a row for each scaled position, and rows of
// three axes are four times as many (linear_scaling_rope.py, mrope.py).
func (table *rope) positions(model *Model) int64 {
	switch {
	case table.rotation.Type == "yarn" && table.rotation.Trained > 0:
		return max(model.Trained, int64(float64(table.rotation.Trained)*table.rotation.Factor))
	case table.rotation.Type == "linear" && table.rotation.Factor > 1:
		return int64(float64(model.Trained) * table.rotation.Factor)
	case model.Family == "qwen2_vl" || model.Family == "qwen2_5_vl":
		return 4 * model.Trained
	}
	return model.Trained
}

func ropes(tables map[rope]bool, layers []modelgraph.Layer) {
	for i := range layers {
		if op, ok := layers[i].Op.(modelgraph.Attention); ok && op.Rope {
			width := op.HeadDim
			if op.RopeDim > 0 {
				width = op.RopeDim
			}
			tables[rope{op.Rotation, width}] = true
		}
	}
}

// bytes are those of a parameter on a GPU. The engines convert what is stored in the model's type;
// other types stay, such as those of scales.
func (model *Model) bytes(tensor *modelgraph.Tensor) int64 {
	if tensor.DType == model.stored {
		return tensor.Numel * model.Element
	}
	return tensor.Bytes
}

func (model *Model) outside(weights *Weights, layers []modelgraph.Layer) {
	for i := range layers {
		layer := &layers[i]
		if _, rotary := layer.Op.(modelgraph.Rotary); rotary {
			continue
		}
		for j := range layer.Params {
			tensor := &layer.Params[j]
			target := weights
			if tensor.Owner != "" {
				if _, head := layer.Op.(modelgraph.Head); !head {
					continue
				}
				target = &model.Table
			}
			target.addTensor(layer, tensor, model.bytes(tensor))
		}
		if head, ok := layer.Op.(modelgraph.Head); ok && !head.Pooled {
			model.Vocabulary, model.Width = head.Vocab, head.Dim
		}
	}
}

// layer reads one decoder layer.
func (model *Model) layer(name string, layers []modelgraph.Layer) (layer Layer, err error) {
	known := false
	for i := range layers {
		part := &layers[i]
		model.weights(&layer, part)
		switch op := part.Op.(type) {
		case modelgraph.Attention:
			known = true
			if err := model.attention(&layer, &op, part.Name); err != nil {
				return layer, err
			}
		case modelgraph.StateSpace:
			known = true
			if layer.Cache.Kind != NoCache {
				return layer, fmt.Errorf("%q: a layer with attention and a recurrent state is not planned for engines that serve", name)
			}
			layer.Cache, layer.Chunked, layer.Delta = stateCache(&op, model.Family, model.Element), op.Heads > 0 && op.State > 0, op.Delta
			layer.widths = append(layer.widths, op.Inner)
		case modelgraph.MLP:
			known = true
			width := op.Hidden
			if op.Gated {
				width *= 2
			}
			layer.FeedForward = max(layer.FeedForward, width+op.Hidden)
			layer.widths = append(layer.widths, op.Hidden)
		case modelgraph.MoE:
			known = true
			model.Experts = max(model.Experts, op.Experts)
			layer.Read = float64(op.TopK) / float64(max(op.Experts, 1))
			layer.Routed = max(layer.Routed, op.TopK)
			layer.ExpertWidth = op.Hidden
			layer.FeedForward = max(layer.FeedForward, 3*op.SharedHidden)
			layer.widths = append(layer.widths, op.Hidden, op.SharedHidden)
		case modelgraph.Opaque:
			return layer, fmt.Errorf("%q: the structure of this layer is not known", part.Name)
		}
	}
	if !known {
		return layer, fmt.Errorf("%q: this layer has no attention and no state that is known", name)
	}
	return layer, nil
}

// weights adds the parameters of a part to a layer.
func (model *Model) weights(layer *Layer, part *modelgraph.Layer) {
	_, experts := part.Op.(modelgraph.MoE)
	for j := range part.Params {
		tensor := &part.Params[j]
		if tensor.Owner == "" {
			layer.Weights.addTensor(part, tensor, model.bytes(tensor))
		}
		if !experts && model.Quantized == "awq" && strings.HasSuffix(tensor.Name, ".qzeros") {
			layer.Zeros += tensor.Bytes
		}
	}
}

// attention adds attention to a layer.
func (model *Model) attention(layer *Layer, op *modelgraph.Attention, name string) error {
	if op.Cross || op.IndexHeads > 0 {
		return fmt.Errorf("%q: attention to an encoder and sparse attention are not planned for engines that serve", name)
	}
	if layer.Cache.Kind != NoCache {
		return fmt.Errorf("%q: a layer with attention and a recurrent state is not planned for engines that serve", name)
	}
	model.Heads, model.KeyHeads = max(model.Heads, op.Heads), max(model.KeyHeads, op.KVHeads)
	layer.Cache = attentionCache(op, model.Family, model.Element)
	expanded := op.Heads * (op.HeadDim - op.RopeDim + op.ValueDim)
	if layer.Cache.Kind == Latent {
		layer.Expanded = expanded
	}
	if op.KVRank > 0 && model.Quantized != "" { // MLAAttention.process_weights_after_loading
		layer.Unpacked = model.Element * op.KVRank * expanded
	}
	return nil
}

// attentionCache is the cache of attention, for all heads.
func attentionCache(op *modelgraph.Attention, family string, element int64) Cache {
	cache := Cache{Kind: Full, Heads: op.KVHeads, Head: op.HeadDim, Value: op.ValueDim, Element: element, Window: op.Window}
	if cache.Value == 0 {
		cache.Value = op.HeadDim
	}
	switch {
	case op.SharedKV, op.Bidirectional:
		return Cache{}
	case op.KVRank > 0 && family == "minicpm3": // values are padded to the width of keys (minicpm3.py)
		cache.Value = op.HeadDim
	case op.KVRank > 0:
		return Cache{Kind: Latent, Heads: 1, Head: op.KVRank + op.RopeDim, Element: element}
	case op.Window > 0 && (family == "llama4" || family == "llama4_text"):
		cache.Kind = Chunked
	case op.Window > 0:
		cache.Kind = Sliding
	}
	return cache
}

// stateCache is the state of a recurrent mixer: its last inputs of the convolution, and its matrix of
// each head (model_executor/layers/mamba/mamba_utils.py, MambaStateShapeCalculator).
func stateCache(op *modelgraph.StateSpace, family string, element int64) Cache {
	convolved := op.Inner
	if op.Heads > 0 {
		convolved += 2 * op.Groups * op.State
	}
	state := element
	// Its config says so (mamba_ssm_dtype), or vLLM does (models/config.py, NemotronHForCausalLMConfig).
	if strings.HasPrefix(family, "qwen3_5") || family == "nemotron_h" {
		state = 4
	}
	return Cache{Kind: State, Bytes: element*(op.Kernel-1)*convolved + state*op.Inner*op.State, Element: element}
}
