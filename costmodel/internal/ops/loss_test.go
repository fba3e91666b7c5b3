package ops_test

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// lossShape returns a head's micro-batch of 2 × 2048 tokens with a trained weight.
func lossShape(op modelgraph.Head, p costmodel.Precision, l string) ops.Shape {
	const n = 2 * 2048
	return ops.Shape{
		Tokens: n, Length: 2048, Batch: 2, Logits: n, Train: true, HeadAlone: true, Precision: p, Loss: l,
		NewGrads: ops.WeightBytes(p) * op.Dim * op.Vocab, Weights: op.Dim * op.Vocab,
	}
}

// TestChunkedLoss checks the peak in addition to the body's saved bytes and the head's input. The
// wanted figures are counts of tensors from the loop of torchtitan's ChunkedLossWrapper on fake
// tensors (torch 2.11), after a model of one layer.
func TestChunkedLoss(t *testing.T) {
	const tolerance = .01
	llama, qwen := modelgraph.Head{Dim: 4096, Vocab: 128256}, modelgraph.Head{Dim: 2048, Vocab: 151936}
	for _, c := range []struct {
		op   modelgraph.Head
		p    costmodel.Precision
		want float64
	}{{llama, costmodel.BF16True, 2435319296}, {qwen, costmodel.BF16True, 1744963072}, {llama, costmodel.BF16Mixed, 6544426496}} {
		s := lossShape(c.op, c.p, value.LossChunked)
		got := ops.Of(c.op, &s)
		input := ops.StreamBytes(c.p) * c.op.Dim * s.Logits
		peak := float64(got.Memory.Forward - input)
		if off := peak/c.want - 1; math.Abs(off) > tolerance {
			t.Errorf("%+v %s: %.0f B, counted %.0f B, off by %+.2f %%", c.op, c.p, peak, c.want, 100*off)
		}
		if got.Output != 0 || got.Memory.Saved != input+s.NewGrads+8*s.Logits {
			t.Errorf("%+v %s: keeps %d B, outputs of %d B", c.op, c.p, got.Memory.Saved, got.Output)
		}
	}
}

// TestFusedLoss by hand: 128256/4096 makes 32 parts of 128 tokens. The gradients of the input and
// of the weight are kept, and no logits.
func TestFusedLoss(t *testing.T) {
	const n, h, v = 4096, 4096, 128256
	op := modelgraph.Head{Dim: h, Vocab: v}
	s := lossShape(op, costmodel.BF16True, value.LossFused)
	got := ops.Of(op, &s).Memory
	if want := int64(2*n*h + 2*v*h); got.Saved != want {
		t.Errorf("keeps %d B, want %d B", got.Saved, want)
	}
	if want := int64(2*n*h + 2*n*h + 2*v*h + (2*v+12)*128 + 12*n); got.Forward != want {
		t.Errorf("a peak of %d B, want %d B", got.Forward, want)
	}
	if got.Saved+got.Backward < got.Grads || got.Grads != s.NewGrads {
		t.Errorf("backward of %d B leaves %d B of gradients", got.Backward, got.Grads)
	}
}

// TestClassifierLoss: a pooled head ignores the kind of the tokens' loss.
func TestClassifierLoss(t *testing.T) {
	op := modelgraph.Head{Dim: 1024, Vocab: 1000, Pooled: true}
	eager := lossShape(op, costmodel.BF16True, "")
	for _, l := range []string{value.LossChunked, value.LossFused} {
		s := lossShape(op, costmodel.BF16True, l)
		if got, want := ops.Of(op, &s).Memory, ops.Of(op, &eager).Memory; got != want {
			t.Errorf("%s: %+v, want %+v", l, got, want)
		}
	}
}

// TestChunkedLossFigures counts the loop of ChunkedLossWrapper tensor by tensor for 60 positions in
// eight parts of up to 8. So no term hides in a tolerance. The peak is at a part's logits, at the
// head's gradient, or, with many positions, at the cast of the input's gradient.
func TestChunkedLossFigures(t *testing.T) {
	const n, part, many = 60, 8, 6400
	for _, c := range []struct {
		name    string
		n       int64
		op      modelgraph.Head
		p       costmodel.Precision
		forward int64
	}{
		// The input and its gradient's fp32 buffer, labels and weights of all positions, and the
		// head's gradient. A part has bf16 logits and, in fp32, their copy, log-softmax and its
		// gradient.
		{"logits", n, modelgraph.Head{Dim: 4, Vocab: 100}, costmodel.BF16True, (2+4)*4*n + 8*n + 2*4*100 + (2+12)*part*100},
		// A soft cap keeps one more tensor.
		{"cap", n, modelgraph.Head{Dim: 4, Vocab: 100, SoftCap: true}, costmodel.BF16True, (2+4)*4*n + 8*n + 2*4*100 + (2+12+2)*part*100},
		// The head's gradient twice, for this part and for the sum, in addition to the logits,
		// their gradient and the part's input gradient.
		{"weight", n, modelgraph.Head{Dim: 500, Vocab: 100}, costmodel.BF16True, (2+4)*500*n + 8*n + 2*2*500*100 + 2*2*part*100 + 2*500*n/8},
		// Under autocast the 16-bit copies of the weight and of the part's input stay. The part's
		// input gradient is in 16 bits before its cast.
		{"mixed", n, modelgraph.Head{Dim: 500, Vocab: 100}, costmodel.BF16Mixed, (4+4)*500*n + 8*n + 2*4*500*100 + 2*2*part*100 + (2*500*100 - 2*part*100) + 4*500*n/8 + 2*500*100 + 2*500*n/8},
		// At the end the buffer is cast while the results exist.
		{"cast", many, modelgraph.Head{Dim: 4, Vocab: 1}, costmodel.BF16True, (2+4)*4*many + 2*4*many + 2*4 + 8*many},
	} {
		grads := ops.WeightBytes(c.p) * c.op.Dim * c.op.Vocab
		s := ops.Shape{Tokens: c.n, Length: c.n, Batch: 1, Logits: c.n, Train: true, HeadAlone: true, Precision: c.p, Loss: value.LossChunked, NewGrads: grads, Weights: c.op.Dim * c.op.Vocab}
		got := ops.Of(c.op, &s)
		if got.Memory.Forward != c.forward {
			t.Errorf("%s: a peak of %d B, want %d", c.name, got.Memory.Forward, c.forward)
		}
		if want := ops.StreamBytes(c.p)*c.op.Dim*c.n + grads + 8*c.n; got.Memory.Saved != want || got.Output != 0 {
			t.Errorf("%s: keeps %d B and gives %d, want %d and 0", c.name, got.Memory.Saved, got.Output, want)
		}
	}
}

// TestTiledLossFigures counts TRL's tiles by hand: 5,000 labels are two tiles of
// tokens, 40,000 entries two of the vocabulary.
func TestTiledLossFigures(t *testing.T) {
	const dim, vocab, tokens, labels = 8, 40000, 5001, 5000
	const tile, weight, in = 2 * 4096 * 32768, dim * vocab, dim * labels
	for _, c := range []struct {
		name              string
		precision         costmodel.Precision
		frozen            bool
		forward, backward int64
	}{
		// The positions' copy, the whole output, statistics and a tile.
		{"bf16", costmodel.BF16True, false, 2*in + 16*labels + 2*dim*tokens + 28*labels + tile, 4*in + 2*in + 4*weight + 2*weight + tile},
		// A tile's tokens and weights are cast; backward has two such casts.
		{"mixed", costmodel.BF16Mixed, false, 4*in + 16*labels + 4*dim*tokens + 28*labels + tile + 2*dim*4096 + 2*dim*32768, 4*in + 4*weight + tile + 2*dim*4096 + 2*dim*40000},
		{"frozen", costmodel.BF16True, true, 2*in + 16*labels + 2*dim*tokens + 28*labels + tile, 4*in + 2*in + tile},
	} {
		grads := ops.WeightBytes(c.precision) * weight
		if c.frozen {
			grads = 0
		}
		shape := ops.Shape{
			Tokens: tokens, Length: tokens, Batch: 1, Logits: tokens, Train: true, HeadAlone: true, Precision: c.precision, Loss: value.LossTiled,
			NewGrads: grads, Weights: weight, Frozen: c.frozen, InputGrad: c.frozen,
		}
		got := ops.Of(modelgraph.Head{Dim: dim, Vocab: vocab}, &shape).Memory
		if got.Forward != c.forward || got.Backward != c.backward {
			t.Errorf("%s: forward %d B and backward %d B, want %d and %d", c.name, got.Forward, got.Backward, c.forward, c.backward)
		}
	}
}
