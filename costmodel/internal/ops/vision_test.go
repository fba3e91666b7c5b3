package ops_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestVisionMemory: what a caller's pixels, a scale and an activation of a projection's result, a
// block's variables, biases of windows and norms of values add. Differences follow from the sources that the rules name.
func TestVisionMemory(t *testing.T) {
	const tokens, dim = 2 * 3136, 96
	shape := ops.Shape{Tokens: tokens, Length: tokens / 2, Batch: 2, Train: true, Precision: costmodel.BF16True}
	saved := func(op modelgraph.Op, change func(*ops.Shape)) int64 {
		s := shape
		if change != nil {
			change(&s)
		}
		return ops.Of(op, &s).Memory.Saved
	}
	conv := modelgraph.Conv{In: 3, Out: dim, Kernel: 16, Stride: 16}
	given := func(s *ops.Shape) { s.Given = true }
	mixed := func(s *ops.Shape) { s.Precision = costmodel.BF16Mixed }
	if got := saved(conv, func(s *ops.Shape) { given(s); mixed(s) }) - saved(conv, mixed); got != 4*3*16*tokens {
		t.Errorf("autocast keeps %d bytes of pixels in addition to their cast", got)
	}
	infer := shape
	infer.Train, infer.Given = false, true
	if got := ops.Of(conv, &infer).Memory.UntilBodyEnd; got != 2*3*16*tokens {
		t.Errorf("pixels are %d bytes in inference", got)
	}
	linear, scaled := modelgraph.Linear{In: 4 * dim, Out: dim}, modelgraph.Linear{In: 4 * dim, Out: dim, LayerScale: true}
	if got := saved(scaled, nil) - saved(linear, nil); got != 2*dim*tokens {
		t.Errorf("a scale keeps %d bytes of a projection", got)
	}
	extra := linear
	extra.Extra = 1
	if got := ops.Of(extra, &shape).Memory.Forward - ops.Of(linear, &shape).Memory.Forward; got != 2*4*dim*tokens {
		t.Errorf("a variable of the block holds %d bytes while a projection runs", got)
	}
	active := modelgraph.Linear{In: 4 * dim, Out: dim, Activation: "gelu"}
	if got := ops.Of(active, &infer).Memory.Forward; got != 2*(4*dim+dim)*tokens { // the input is freed before the activation
		t.Errorf("a projection with an activation takes %d bytes in inference", got)
	}
	windows := modelgraph.Attention{Dim: dim, Heads: 3, KVHeads: 3, HeadDim: 32, Bidirectional: true, Packed: true, Window: 49, ScoreBias: "windows"}
	shifted := windows
	shifted.ScoreBias = "shifted"
	if got := saved(shifted, nil) - saved(windows, nil); got != 2*3*64*(tokens-49) { // each window has its bias, in rows of 64
		t.Errorf("shifted windows keep %d bytes more", got)
	}
	normed := modelgraph.Attention{Dim: dim, Heads: 3, KVHeads: 1, HeadDim: 32, QKNorm: modelgraph.RMSNorm, QKNormFP32: true}
	values := normed
	values.ValueNorm = true
	if got := saved(values, nil) - saved(normed, nil); got != 4*32*tokens {
		t.Errorf("a norm of values keeps %d bytes", got)
	}
	wide := modelgraph.Attention{Dim: dim, Heads: 3, KVHeads: 1, HeadDim: 512}
	narrow := wide
	narrow.HeadDim = 256
	if more := saved(wide, nil) - 2*saved(narrow, nil); more < 2*2*2*512*tokens/2 { // keys and values of all heads
		t.Errorf("heads of 512 keep %d bytes more than twice those of 256", more)
	}
}

// TestFusedLayerNorms: a layer norm of q and k is one kernel. It keeps its input, which a fused
// projection's v keeps already, or autocast's fp32 copy of it, and 1/σ of each head.
func TestFusedLayerNorms(t *testing.T) {
	const tokens, heads, width = 2 * 1024, 4, 64
	adds := func(precision costmodel.Precision, fused bool) int64 {
		saved := func(norm modelgraph.NormStyle) int64 {
			shape := ops.Shape{Tokens: tokens, Length: tokens / 2, Batch: 2, Train: true, Precision: precision}
			op := modelgraph.Attention{Dim: heads * width, Heads: heads, KVHeads: heads, HeadDim: width, Rope: true, Fused: fused, QKNorm: norm}
			return ops.Of(op, &shape).Memory.Saved
		}
		return saved(modelgraph.LayerNorm) - saved("")
	}
	const elements, figures = tokens * 2 * heads * width, 4 * tokens * 2 * heads
	if got := adds(costmodel.BF16True, true); got != figures {
		t.Errorf("norms of a fused projection keep %d bytes, want %d", got, figures)
	}
	if got := adds(costmodel.BF16True, false); got != 2*elements+figures {
		t.Errorf("norms of projections keep %d bytes, want %d", got, 2*elements+figures)
	}
	if got := adds(costmodel.BF16Mixed, true); got != 4*elements+figures {
		t.Errorf("norms under autocast keep %d bytes, want %d", got, 4*elements+figures)
	}
}
