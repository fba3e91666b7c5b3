package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// part is what a sub-module of a block computes and holds.
type part struct {
	op      modelgraph.Op
	params  []modelgraph.Tensor
	buffers []modelgraph.Tensor
}

// decoder is a Llama-like stack: embedding, blocks of attention and
// feed-forward with a norm before each, final norm, rotary embedding.
// Families differ in the parts (modeling_llama.py: LlamaModel).
type decoder struct {
	hidden, vocab, layers int64

	norm       modelgraph.NormStyle
	epsilon    float64
	padding    int64 // as in [modelgraph.Embedding]
	attention  func(layer int64) part
	ffn        func(layer int64) part
	sandwich   bool // norms after attention and feed-forward too (Gemma 2)
	embedScale bool // buffer embed_tokens.embed_scale (Gemma)
	softCap    bool // logits through a scaled tanh (Gemma 2)
	logitCap   float64
	rotary     modelgraph.Layer // its Op and Buffers; no Op: none
	// custom adds a decoder layer where block does not fit (DeciLM).
	custom func(modules *builder, name string, layer int64)
}

// build adds the stack at a module path ("model", or "" for the base class).
func (d *decoder) build(modules *builder, path string) {
	d.embed(modules, path)
	d.stack(modules, path)
}

// embed adds the embedding; its output becomes the hidden state.
func (d *decoder) embed(modules *builder, path string) {
	op := modelgraph.Embedding{Vocab: d.vocab, Dim: d.hidden, Scaled: d.embedScale, Padding: d.padding}
	if d.embedScale {
		op.Factor = math.Sqrt(float64(d.hidden))
	}
	embed := modules.add(dot(path, "embed_tokens"), op, nil, tensor("weight", d.vocab, d.hidden))
	if d.embedScale {
		embed.Buffers = []modelgraph.Tensor{tensor("embed_scale")}
	}
	modules.hidden = embed.Name
}

// stack adds the decoder layers, the final norm and the rotary embedding.
func (d *decoder) stack(modules *builder, path string) {
	block := d.block
	if d.custom != nil {
		block = d.custom
	}
	for i := range d.layers {
		name := indexed(dot(path, "layers"), i)
		modules.unit(name, func() { block(modules, name, i) })
	}
	modules.hidden = modules.add(dot(path, "norm"), d.normOp(false), []string{modules.hidden}, tensor("weight", d.hidden)).Name
	if d.rotary.Op != nil {
		modules.add(dot(path, "rotary_emb"), d.rotary.Op, nil).Buffers = d.rotary.Buffers
	}
}

// block adds one decoder layer. Modules stand in the order the framework
// registers them; Inputs carry the order they run in.
func (d *decoder) block(modules *builder, name string, i int64) {
	attn, ffn := d.attention(i), d.ffn(i)
	norms := []string{dot(name, "input_layernorm"), dot(name, "post_attention_layernorm")}
	attnIn, ffnIn := norms[0], norms[1]
	attnName, ffnName := dot(name, "self_attn"), dot(name, "mlp")
	residual := modules.hidden
	if d.sandwich {
		ffnIn = dot(name, "pre_feedforward_layernorm")
		d.add(modules, attnName, attn, attnIn, "")
		d.add(modules, ffnName, ffn, ffnIn, "")
		d.addNorm(modules, norms[0], false, residual, "")
		d.addNorm(modules, norms[1], true, attnName, residual)
		d.addNorm(modules, ffnIn, false, norms[1], "")
		modules.hidden = dot(name, "post_feedforward_layernorm")
		d.addNorm(modules, modules.hidden, true, ffnName, norms[1])
		return
	}
	d.add(modules, attnName, attn, attnIn, residual)
	d.add(modules, ffnName, ffn, ffnIn, attnName)
	d.addNorm(modules, norms[0], false, residual, "")
	d.addNorm(modules, norms[1], false, attnName, "")
	modules.hidden = ffnName
}

func (d *decoder) add(modules *builder, name string, p part, in, residual string) {
	modules.add(name, p.op, []string{in, residual}, p.params...).Buffers = p.buffers
}

func (d *decoder) addNorm(modules *builder, name string, post bool, in, residual string) {
	modules.add(name, d.normOp(post), []string{in, residual}, tensor("weight", d.hidden))
}

func (d *decoder) normOp(post bool) modelgraph.Norm {
	return modelgraph.Norm{Dim: d.hidden, Style: d.norm, Post: post, Epsilon: d.epsilon}
}

// rotary is a rotary embedding's module with its two fp32 buffers
// [headDim/2] (modeling_rope_utils.py: inv_freq, original_inv_freq). An odd
// width is rounded up, as torch.arange(0, headDim, 2) does.
func rotary(headDim int64) modelgraph.Layer {
	count := (headDim + 1) / 2
	return modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: headDim}, Buffers: []modelgraph.Tensor{
		buffer("inv_freq", modelgraph.F32, count),
		buffer("original_inv_freq", modelgraph.F32, count),
	}}
}

// rotaryRows is a rotary embedding that makes a row of cosines and sines for
// every sequence.
func rotaryRows(headDim int64) modelgraph.Layer {
	layer := rotary(headDim)
	layer.Op = modelgraph.Rotary{HeadDim: headDim, Rows: true}
	return layer
}

// causal adds the decoder and the head of a class (modeling_layers.py:
// GenericForSequenceClassification and its siblings).
func (d *decoder) causal(modules *builder, cfg *config, class string, tied bool) {
	switch {
	case baseClass(class):
		d.build(modules, "")
	case isTask(class, questionAnswering):
		d.build(modules, answeringPath(class))
		modules.add("qa_outputs", modelgraph.Head{Dim: d.hidden, Vocab: 2}, []string{modules.hidden}, linearParams("", d.hidden, 2, true)...)
	case isTask(class, sequenceClassification), isTask(class, tokenClassification):
		d.build(modules, "model")
		count := cfg.labels()
		token := isTask(class, tokenClassification)
		modules.add("score", modelgraph.Head{Dim: d.hidden, Vocab: count, Pooled: !token}, []string{modules.hidden}, linearParams("", d.hidden, count, token && cfg.bool(true, "token_classification_bias"))...)
	default:
		d.build(modules, "model")
		modules.add("lm_head", modelgraph.Head{Dim: d.hidden, Vocab: d.vocab, SoftCap: d.softCap, LogitCap: d.logitCap}, []string{modules.hidden}, linearParams("", d.hidden, d.vocab, false)...)
		if tied {
			modules.tie("model.embed_tokens.weight", "lm_head.weight")
		}
	}
}
