package modelgraph_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// buildLlama is Llama-3.2-1B by hand.
func buildLlama() *modelgraph.Builder {
	const width, vocab = 2048, 128256
	b := &modelgraph.Builder{Name: "llama-3.2-1b", DType: modelgraph.BF16, Epsilon: 1e-5}
	rotation := modelgraph.Rotation{Type: "llama3", Base: 500_000, Factor: 32, Trained: 8192, Slow: 1, Fast: 4}
	b.Add("model.embed_tokens", modelgraph.Embedding{Vocab: vocab, Dim: width})
	for _, blocks := range []int{7, 9} {
		b.Decoder("model.layers", blocks, modelgraph.RMSNorm,
			modelgraph.Attention{Dim: width, Heads: 32, KVHeads: 8, HeadDim: 64, Rope: true, Rotation: rotation},
			modelgraph.MLP{Dim: width, Hidden: 8192, Gated: true, Activation: "silu"})
	}
	b.Add("model.norm", modelgraph.Norm{Dim: width, Style: modelgraph.RMSNorm, Epsilon: 1e-5})
	b.Add("model.rotary_emb", modelgraph.Rotary{HeadDim: 64})
	b.Add("lm_head", modelgraph.Head{Dim: width, Vocab: vocab})
	b.Tie("model.embed_tokens.weight", "lm_head.weight")
	return b
}

// TestBuilderIsLlama: what the builder makes of the dimensions is what hf reads
// from the config, whose tensors are checked against Transformers'
// (hf.TestTensors): the same tensors, units and ties, computed from the same
// inputs.
func TestBuilderIsLlama(t *testing.T) {
	t.Parallel()
	builder := buildLlama()
	if _, err := builder.Build(); err != nil {
		t.Fatal(err)
	}
	built, err := builder.Build() // again: a graph of its own
	if err != nil {
		t.Fatal(err)
	}
	want, err := load.Model("llama-3.2-1b", load.Options{BuiltIn: fixtures.Models(), Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if got := built.Digest(); got != want.Digest() {
		t.Errorf("digest %s, want that of the config, %s", got, want.Digest())
	}
	var mine, read bytes.Buffer
	if err := modelgraph.Write(&mine, built); err != nil {
		t.Fatal(err)
	}
	want.MaxSeq = 0 // which no dimension says
	if err := modelgraph.Write(&read, want); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(mine.Bytes(), read.Bytes()) {
		t.Errorf("the built model is written as\n%.2000s\nthe read one as\n%.2000s", mine.Bytes(), read.Bytes())
	}
}

// TestBuilderEveryOp: tensors of every op pass the check of weights, with
// biases and without.
func TestBuilderEveryOp(t *testing.T) {
	t.Parallel()
	for _, op := range []modelgraph.Op{
		modelgraph.Embedding{Vocab: 10, Dim: 8},
		modelgraph.Norm{Dim: 8},
		modelgraph.Norm{Dim: 8, Style: modelgraph.LayerNorm},
		modelgraph.Attention{Dim: 8, Heads: 4, KVHeads: 2, HeadDim: 6},
		modelgraph.Attention{Dim: 8, Heads: 4, KVHeads: 2, HeadDim: 6, ValueDim: 5, Fused: true},
		modelgraph.Attention{Dim: 8, Heads: 4, KVHeads: 4, HeadDim: 6, QKNorm: modelgraph.RMSNorm, LayerScale: true},
		modelgraph.Attention{Dim: 8, Heads: 4, KVHeads: 4, HeadDim: 6, QKNorm: modelgraph.RMSNorm, QKNormWhole: true},
		modelgraph.Attention{Dim: 8, Heads: 4, KVHeads: 4, HeadDim: 6, ValueDim: 5, QRank: 7, KVRank: 3, RopeDim: 2},
		modelgraph.Attention{Dim: 8, Heads: 4, KVHeads: 4, HeadDim: 6, ValueDim: 5, KVRank: 3, RopeDim: 2},
		modelgraph.MLP{Dim: 8, Hidden: 20},
		modelgraph.MLP{Dim: 8, Hidden: 20, Gated: true, LayerScale: true},
		modelgraph.MLP{Dim: 8, Hidden: 20, Gated: true, Fused: true},
		modelgraph.MoE{Dim: 8, Hidden: 20, Experts: 4, TopK: 2, SharedHidden: 10},
		modelgraph.Head{Dim: 8, Vocab: 10},
		modelgraph.Linear{In: 8, Out: 9},
		modelgraph.Conv{In: 3, Out: 8, Kernel: 4},
		modelgraph.StateSpace{Dim: 8, Inner: 16, State: 4, Kernel: 4, DtRank: 2},
		modelgraph.Rotary{HeadDim: 6},
	} {
		for _, bias := range []bool{false, true} {
			b := modelgraph.Builder{Name: "m", DType: modelgraph.F32}
			b.Bias = bias
			b.Add("l", op)
			g, err := b.Build()
			if err != nil {
				t.Errorf("%T %+v: %v", op, op, err)
				continue
			}
			if _, rotary := op.(modelgraph.Rotary); g.ParamCount() == 0 != rotary {
				t.Errorf("%T has %d parameters", op, g.ParamCount())
			}
		}
	}
}

// TestBuilderRefuses: a fault names the place and the value, and says what to
// do.
func TestBuilderRefuses(t *testing.T) {
	t.Parallel()
	embed := modelgraph.Embedding{Vocab: 10, Dim: 8}
	for _, c := range []struct {
		add  func(b *modelgraph.Builder)
		want string
	}{
		{func(b *modelgraph.Builder) { b.Add("e", modelgraph.Embedding{Dim: 8}) }, `layers[0].op: "e": op embedding needs vocab: it is 0`},
		{func(b *modelgraph.Builder) { b.Add("e", nil) }, `layers[0].op: "e": there is no op`},
		{func(b *modelgraph.Builder) { b.Add("e", modelgraph.Opaque{}) }, `layers[0].op: "e": op opaque has no dimensions that tensors follow from: give the tensors to New`},
		{func(b *modelgraph.Builder) { b.Add("e", &embed) }, `layers[0].op: op "embedding" is a ptr: give the struct itself`},
		{func(b *modelgraph.Builder) { b.Add("l", modelgraph.Linear{In: -1, Out: 4}) }, `layers[0].op: op "linear": in is -1, not between 0 and 2^40`},
		{func(b *modelgraph.Builder) {
			b.Add("e", embed)
			b.Add("a", modelgraph.Attention{Dim: 8, Heads: 8, KVHeads: 3, HeadDim: 4})
		}, `layers[1].op: "a": op attention: 3 KV heads do not divide 8 heads`},
		{func(b *modelgraph.Builder) {
			b.Add("a", modelgraph.Attention{Dim: 8, Heads: 8, KVHeads: 8, HeadDim: 4, RopeDim: 9})
		}, `layers[0].op: "a": op attention: rope_dim 9 is more than head_dim 4`},
		{func(b *modelgraph.Builder) { b.Add("m", modelgraph.MoE{Dim: 8, Hidden: 8, Experts: 2, TopK: 3}) }, `layers[0].op: "m": op moe: a token cannot go to 3 of 2 experts`},
		{func(b *modelgraph.Builder) {
			b.Add("e", embed)
			b.Add("h", modelgraph.Head{Dim: 9, Vocab: 10})
		}, `layers[1].inputs[0]: "e" gives 8 values a token, and "h" takes 9: make their dimensions equal`},
		{func(b *modelgraph.Builder) {
			b.Add("e", embed)
			b.Add("l", modelgraph.Linear{In: 8, Out: 4})
			b.Add("l2", modelgraph.Linear{In: 4, Out: 6}, "l", "e")
		}, `layers[2].inputs[1]: "e" gives 8 values a token, and "l2" takes 6`},
		{func(b *modelgraph.Builder) { b.Add("n", modelgraph.Norm{Dim: 8}, "x") }, `layers[0].inputs[0]: unknown layer "x"`},
		{func(b *modelgraph.Builder) { b.Block("a", func() { b.Block("b", func() {}) }) }, `layers[0].unit: block "b" lies inside block "a": end that one first`},
		{func(b *modelgraph.Builder) {
			b.Add("e", embed)
			b.Add("l", modelgraph.Linear{In: 8, Out: 9})
			b.Add("h", modelgraph.Head{Dim: 9, Vocab: 10})
			b.Tie("e.weight", "h.weight")
		}, `ties[0][1]: "h.weight" has 90 elements and "e.weight" has 80: they cannot share storage`},
		{func(*modelgraph.Builder) {}, `layers: the model has no layers`},
		{func(b *modelgraph.Builder) {
			b.Decoder("h", 2, modelgraph.RMSNorm, modelgraph.Attention{Dim: 8, Heads: 2, KVHeads: 2, HeadDim: 4}, modelgraph.MLP{Dim: 8, Hidden: 8})
		}, `layers[0].inputs: block "h.0" has nothing to read: add an Embedding before it`},
	} {
		b := modelgraph.Builder{Name: "m", DType: modelgraph.BF16}
		c.add(&b)
		if g, err := b.Build(); err == nil || g != nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
