package hf

import "github.com/devmap-dev/devmap/modelgraph"

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
	attention  func(layer int64) part
	ffn        func(layer int64) part
	sandwich   bool             // norms after attention and feed-forward too (Gemma 2)
	embedScale bool             // buffer embed_tokens.embed_scale (Gemma)
	softCap    bool             // logits through a scaled tanh (Gemma 2)
	rotary     modelgraph.Layer // its Op and Buffers; no Op: none
	// custom adds a decoder layer where block does not fit (DeciLM).
	custom func(b *builder, name string, layer int64)
}

// build adds the stack at a module path ("model", or "" for the base class).
func (d *decoder) build(b *builder, path string) {
	d.embed(b, path)
	d.stack(b, path)
}

// embed adds the embedding; its output becomes the hidden state.
func (d *decoder) embed(b *builder, path string) {
	embed := b.add(dot(path, "embed_tokens"), modelgraph.Embedding{Vocab: d.vocab, Dim: d.hidden, Scaled: d.embedScale}, nil,
		tensor("weight", d.vocab, d.hidden))
	if d.embedScale {
		embed.Buffers = []modelgraph.Tensor{tensor("embed_scale")}
	}
	b.hidden = embed.Name
}

// stack adds the decoder layers, the final norm and the rotary embedding.
func (d *decoder) stack(b *builder, path string) {
	block := d.block
	if d.custom != nil {
		block = d.custom
	}
	for i := range d.layers {
		name := indexed(dot(path, "layers"), i)
		b.unit(name, func() { block(b, name, i) })
	}
	b.hidden = b.add(dot(path, "norm"), d.normOp(false), []string{b.hidden}, tensor("weight", d.hidden)).Name
	if d.rotary.Op != nil {
		b.add(dot(path, "rotary_emb"), d.rotary.Op, nil).Buffers = d.rotary.Buffers
	}
}

// block adds one decoder layer. Modules stand in the order the framework
// registers them; Inputs carry the order they run in.
func (d *decoder) block(b *builder, name string, i int64) {
	attn, ffn := d.attention(i), d.ffn(i)
	norms := []string{dot(name, "input_layernorm"), dot(name, "post_attention_layernorm")}
	attnIn, ffnIn := norms[0], norms[1]
	attnName, ffnName := dot(name, "self_attn"), dot(name, "mlp")
	residual := b.hidden
	if d.sandwich {
		ffnIn = dot(name, "pre_feedforward_layernorm")
		d.add(b, attnName, attn, attnIn, "")
		d.add(b, ffnName, ffn, ffnIn, "")
		d.addNorm(b, norms[0], false, residual, "")
		d.addNorm(b, norms[1], true, attnName, residual)
		d.addNorm(b, ffnIn, false, norms[1], "")
		b.hidden = dot(name, "post_feedforward_layernorm")
		d.addNorm(b, b.hidden, true, ffnName, norms[1])
		return
	}
	d.add(b, attnName, attn, attnIn, residual)
	d.add(b, ffnName, ffn, ffnIn, attnName)
	d.addNorm(b, norms[0], false, residual, "")
	d.addNorm(b, norms[1], false, attnName, "")
	b.hidden = ffnName
}

func (d *decoder) add(b *builder, name string, p part, in, residual string) {
	b.add(name, p.op, []string{in, residual}, p.params...).Buffers = p.buffers
}

func (d *decoder) addNorm(b *builder, name string, post bool, in, residual string) {
	b.add(name, d.normOp(post), []string{in, residual}, tensor("weight", d.hidden))
}

func (d *decoder) normOp(post bool) modelgraph.Norm {
	return modelgraph.Norm{Dim: d.hidden, Style: d.norm, Post: post}
}

// rotary is a rotary embedding's module with its two fp32 buffers
// [headDim/2] (modeling_rope_utils.py: inv_freq, original_inv_freq). An odd
// width is rounded up, as torch.arange(0, headDim, 2) does.
func rotary(headDim int64) modelgraph.Layer {
	n := (headDim + 1) / 2
	return modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: headDim}, Buffers: []modelgraph.Tensor{
		buffer("inv_freq", modelgraph.F32, n),
		buffer("original_inv_freq", modelgraph.F32, n),
	}}
}

// rotaryRows is a rotary embedding that makes a row of cosines and sines for
// every sequence.
func rotaryRows(headDim int64) modelgraph.Layer {
	l := rotary(headDim)
	l.Op = modelgraph.Rotary{HeadDim: headDim, Rows: true}
	return l
}

// causal adds the decoder and the head of a class (modeling_layers.py:
// GenericForSequenceClassification and its siblings).
func (d *decoder) causal(b *builder, c *config, class string, tied bool) {
	switch {
	case baseClass(class):
		d.build(b, "")
	case isTask(class, questionAnswering):
		d.build(b, answeringPath(class))
		b.add("qa_outputs", modelgraph.Head{Dim: d.hidden, Vocab: 2}, []string{b.hidden}, linear("", d.hidden, 2, true)...)
	case isTask(class, sequenceClassification), isTask(class, tokenClassification):
		d.build(b, "model")
		n := c.labels()
		token := isTask(class, tokenClassification)
		b.add("score", modelgraph.Head{Dim: d.hidden, Vocab: n, Pooled: !token}, []string{b.hidden}, linear("", d.hidden, n, token && c.bool(true, "token_classification_bias"))...)
	default:
		d.build(b, "model")
		b.add("lm_head", modelgraph.Head{Dim: d.hidden, Vocab: d.vocab, SoftCap: d.softCap}, []string{b.hidden}, linear("", d.hidden, d.vocab, false)...)
		if tied {
			b.tie("model.embed_tokens.weight", "lm_head.weight")
		}
	}
}
