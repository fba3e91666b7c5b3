package hf

import (
	"cmp"
	"math"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// part is the operation and tensors of a sub-module of a block.
type part struct {
	op      modelgraph.Op
	params  []modelgraph.Tensor
	buffers []modelgraph.Tensor
}

// decoder is a stack of decoder layers: embedding, blocks of attention and feed-forward with norms
// around them, final norm, rotary embedding. Families differ in the parts, in the form of a block
// and in the modules' names.
type decoder struct {
	hidden, vocab, layers int64
	rows                  int64 // of the embedding, if they are not the vocabulary

	norm     modelgraph.NormStyle
	normBias bool // norms have a bias (nn.LayerNorm)
	// As FP32 and Eager of [modelgraph.Norm] and Scaled of [modelgraph.Head].
	normFP32, normEager, scaled bool
	epsilon                     float64
	padding                     int64 // as in [modelgraph.Embedding]
	attention                   func(layer int64) part
	ffn                         func(layer int64) part
	form                        blockForm // zero: a llama's
	// formAt is the form of a layer if they differ; nil: form.
	formAt func(layer int64) blockForm
	// attentionParallel and ffnParallel are the parts in parallel to those.
	attentionParallel, ffnParallel func(layer int64) part
	names                          decoderNames // zero: a llama's
	// behind adds the modules after the embedding: positions, a dropout.
	behind func(modules *builder, path string)
	// ahead adds the modules after the last norm, which do not run.
	ahead      func(modules *builder, path string)
	embedScale bool // buffer embed_tokens.embed_scale (Gemma)
	// embedFactor is the embedding's scale; 0: the root of the width.
	embedFactor float64
	bareNorms   bool // norms have no tensors (OLMo)
	headBias    bool // of lm_head
	classifier  bool // the token head is called classifier, not score
	labelled    bool // qa_outputs has as many rows as there are labels (GPT-J)
	apart       bool // lm_head never shares the embedding
	logits32    bool // FP32 of [modelgraph.Head]
	softCap     bool // logits through a scaled tanh (Gemma 2)
	logitCap    float64
	rotary      modelgraph.Layer // its Op and Buffers; no Op: none
	// custom adds a decoder layer if block does not fit (DeciLM).
	custom func(modules *builder, name string, layer int64)
}

// decoderNames are the modules of a decoder; base is its path in a class with a head.
type decoderNames struct {
	base, embed, layers, norm string
	rotary                    string // empty: rotary_emb
}

var llamaNames = decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "norm"}

// called are the modules' names.
func (d *decoder) called() decoderNames {
	if d.names == (decoderNames{}) {
		return llamaNames
	}
	return d.names
}

// build adds the stack at a module path ("model", or "" for the base class).
func (d *decoder) build(modules *builder, path string) {
	d.embed(modules, path)
	d.stack(modules, path)
}

// embed adds the embedding; its output becomes the hidden state.
func (d *decoder) embed(modules *builder, path string) {
	rows := cmp.Or(d.rows, d.vocab)
	op := modelgraph.Embedding{Vocab: rows, Dim: d.hidden, Scaled: d.embedScale, Padding: d.padding}
	if d.embedScale {
		op.Factor = cmp.Or(d.embedFactor, math.Sqrt(float64(d.hidden)))
	}
	embed := modules.add(dot(path, d.called().embed), op, nil, tensor("weight", rows, d.hidden))
	if d.embedScale {
		embed.Buffers = []modelgraph.Tensor{tensor("embed_scale")}
	}
	modules.hidden = embed.Name
	if d.behind != nil {
		d.behind(modules, path)
	}
}

// stack adds the decoder layers, the final norm and the rotary embedding.
func (d *decoder) stack(modules *builder, path string) {
	block := d.block
	if d.custom != nil {
		block = d.custom
	}
	for i := range d.layers {
		name := indexed(dot(path, d.called().layers), i)
		modules.unit(name, func() { block(modules, name, i) })
	}
	norm := dot(path, d.called().norm)
	d.addNorm(modules, norm, false, modules.hidden, "")
	modules.hidden = norm
	if d.rotary.Op != nil {
		modules.add(dot(path, cmp.Or(d.called().rotary, "rotary_emb")), d.rotary.Op, nil).Buffers = d.rotary.Buffers
	}
	if d.ahead != nil {
		d.ahead(modules, path)
	}
}

func (d *decoder) add(modules *builder, name string, p part, in, residual string) {
	modules.add(name, p.op, []string{in, residual}, p.params...).Buffers = p.buffers
}

func (d *decoder) addNorm(modules *builder, name string, post bool, in, residual string) {
	var params []modelgraph.Tensor
	if !d.bareNorms {
		params = normParams("", d.hidden, d.normBias)
	}
	modules.add(name, d.normOp(post), []string{in, residual}, params...)
}

func (d *decoder) normOp(post bool) modelgraph.Norm {
	return modelgraph.Norm{Dim: d.hidden, Style: d.norm, Post: post, Epsilon: d.epsilon, FP32: d.normFP32, Eager: d.normEager}
}

// rotary is a rotary embedding's module with its two fp32 buffers [headDim/2]
// (modeling_rope_utils.py: inv_freq, original_inv_freq). An odd width is rounded up, as
// torch.arange(0, headDim, 2) does.
func rotary(headDim int64) modelgraph.Layer {
	count := (headDim + 1) / 2
	return modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: headDim}, Buffers: []modelgraph.Tensor{
		buffer("inv_freq", modelgraph.F32, count),
		buffer("original_inv_freq", modelgraph.F32, count),
	}}
}

// rotaryRows is a rotary embedding that makes a row of cosines and sines for every sequence.
func rotaryRows(headDim int64) modelgraph.Layer {
	layer := rotary(headDim)
	layer.Op = modelgraph.Rotary{HeadDim: headDim, Rows: true}
	return layer
}

// causal adds the decoder and the head of a class (modeling_layers.py:
// GenericForSequenceClassification and its siblings).
func (d *decoder) causal(modules *builder, cfg *config, class string, tied bool) {
	base := d.called().base
	switch {
	case strings.HasSuffix(class, "RewardModel"):
		d.build(modules, base)
		d.reward(modules, class)
	case baseClass(class):
		d.build(modules, "")
	case isTask(class, questionAnswering):
		if base == llamaNames.base {
			base = answeringPath(class)
		}
		d.build(modules, base)
		count := int64(2) // start and end
		if d.labelled {
			count = cfg.labels()
		}
		modules.add("qa_outputs", modelgraph.Head{Dim: d.hidden, Vocab: count}, []string{modules.hidden}, linearParams("", d.hidden, count, true)...)
	case isTask(class, tokenClassification) && d.classifier:
		d.build(modules, base)
		addClassHead(modules, "classifier", d.hidden, cfg.labels(), false, modules.hidden)
	case isTask(class, sequenceClassification), isTask(class, tokenClassification):
		d.build(modules, base)
		count := cfg.labels()
		token := isTask(class, tokenClassification)
		modules.add("score", modelgraph.Head{Dim: d.hidden, Vocab: count, Pooled: !token}, []string{modules.hidden}, linearParams("", d.hidden, count, token && cfg.bool(true, "token_classification_bias"))...)
	default:
		d.build(modules, base)
		modules.add("lm_head", modelgraph.Head{Dim: d.hidden, Vocab: d.vocab, SoftCap: d.softCap, LogitCap: d.logitCap, Scaled: d.scaled, FP32: d.logits32}, []string{modules.hidden}, linearParams("", d.hidden, d.vocab, d.headBias)...)
		if tied && !d.apart {
			modules.tie(dot(base, d.called().embed, "weight"), "lm_head.weight")
		}
	}
}

// reward adds the head of Qwen 2.5's reward models (modeling_qwen2_rm.py): two linear layers, and a
// number a token, or two for the models of steps.
func (d *decoder) reward(modules *builder, class string) {
	count := int64(1)
	if strings.HasSuffix(class, "ProcessRewardModel") {
		count = 2
	}
	op := modelgraph.Linear{In: d.hidden, Out: d.hidden, Activation: "relu"}
	hidden := modules.add("score.0", op, []string{modules.hidden}, linearParams("", d.hidden, d.hidden, true)...).Name
	modules.empty("score.1")
	addClassHead(modules, "score.2", d.hidden, count, false, hidden)
}
