package ops_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// randomOp returns a random op with dimensions up to 2^bits.
func randomOp(rng *rand.Rand, bits int) modelgraph.Op {
	n := func() int64 { return 1 << rng.IntN(bits+1) }
	yes := func() bool { return rng.IntN(2) == 0 }
	act := []string{"silu", "gelu_new", "relu2", ""}[rng.IntN(4)]
	style := []modelgraph.NormStyle{"", modelgraph.RMSNorm, modelgraph.GemmaRMSNorm, modelgraph.LayerNorm}[rng.IntN(4)]
	attention := modelgraph.Attention{
		Dim: n(), Heads: n(), KVHeads: n(), HeadDim: n(), ValueDim: n(), Window: n(), Rope: yes(), QKNorm: style, Fused: yes(),
		Cross: yes(), Bidirectional: yes(), Eager: yes(), SoftCap: yes(), RopeRows: yes(), Packed: yes(), QKNormWhole: yes(), ImageMask: yes(), LayerScale: yes(), Dropout: yes(),
	}
	latent := attention
	latent.QRank, latent.KVRank, latent.RopeDim = n(), n(), n()
	latent.HeadDim += latent.RopeDim // RopeDim is a part of HeadDim
	return []modelgraph.Op{
		modelgraph.Embedding{Vocab: n(), Dim: n(), Scaled: yes()},
		modelgraph.Norm{Dim: n(), Style: style, Post: yes()},
		attention, latent,
		modelgraph.MLP{Dim: n(), Hidden: n(), Gated: yes(), Fused: yes(), Activation: act, LayerScale: yes(), Dropout: yes()},
		modelgraph.MoE{Dim: n(), Hidden: n(), Experts: n(), TopK: n(), SharedHidden: n(), Activation: act},
		modelgraph.Head{Dim: n(), Vocab: n(), SoftCap: yes(), Pooled: yes()},
		modelgraph.Linear{In: n(), Out: n(), Activation: act, Pooled: yes()},
		modelgraph.Conv{In: n(), Out: n(), Kernel: n(), Stride: n(), TokenRatio: n(), Activation: act},
		modelgraph.StateSpace{Dim: n(), Inner: n(), State: n(), Kernel: n(), DtRank: n()},
		modelgraph.Rotary{HeadDim: n(), Rows: yes(), Packed: yes()},
		modelgraph.Parameter{},
		modelgraph.Opaque{},
	}[rng.IntN(13)]
}

// TestBound: if the bound is small enough, all costs are between 0 and the bound. Bytes left after
// backward are part of its peak.
func TestBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	passed := 0
	for range 50000 {
		op := randomOp(rng, 1+rng.IntN(40))
		s := ops.Shape{
			Length: 1 << rng.IntN(17), Batch: 1 << rng.IntN(16), Train: rng.IntN(2) == 0, HeadAlone: rng.IntN(2) == 0, Inputs: rng.IntN(2) == 0, Images: rng.IntN(2) == 0, Scatter: rng.IntN(2) == 0,
			NewGrads: 1 << rng.IntN(50), SecondGrads: 1 << rng.IntN(50), Weights: 1 << rng.IntN(50),
			Attention: []string{"", value.EagerAttention, value.FlashAttention}[rng.IntN(3)],
			Loss:      []string{"", value.LossChunked, value.LossFused}[rng.IntN(3)],
			Precision: []costmodel.Precision{costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP32True}[rng.IntN(3)],
		}
		s.Tokens, s.Encoder, s.Logits = s.Length*s.Batch, s.Batch<<rng.IntN(17), s.Length*s.Batch
		s.Cache = s.Length + rng.Int64N(1<<16)
		most := ops.Bound(op, &s)
		if most > 1<<60 {
			continue
		}
		passed++
		c := ops.Of(op, &s)
		for name, v := range map[string]int64{
			"saved": c.Memory.Saved, "KV cache": c.Memory.KV, "forward": c.Memory.Forward, "held": c.Memory.UntilBodyEnd, "grown cache": c.Memory.KV + c.Memory.CacheGrowth, "late": c.Memory.HeadPeak, "arguments": c.Arguments, "backward": c.Memory.Backward,
			"gradients": c.Memory.Grads, "output": c.Output, "backward's gradients": c.Memory.BackwardGrads,
		} {
			if v < 0 || float64(v) > most {
				t.Fatalf("%#v\n%+v\n%s is %d, the bound %g", op, s, name, v, most)
			}
		}
		switch {
		case math.IsInf(c.FLOPs, 0) || c.FLOPs < 0:
			t.Fatalf("%#v: %v FLOPs", op, c.FLOPs)
		case c.Memory.Forward < c.Memory.Saved+c.Memory.KV+c.Memory.UntilBodyEnd && c.Known:
			t.Fatalf("%#v\n%+v\nforward's peak of %d is less than the %d it keeps", op, s, c.Memory.Forward, c.Memory.Saved+c.Memory.KV+c.Memory.UntilBodyEnd)
		case c.Memory.Saved+c.Memory.Backward < c.Memory.Grads:
			t.Fatalf("%#v\n%+v\nbackward's peak of %d is less than the gradients of %d", op, s, c.Memory.Saved+c.Memory.Backward, c.Memory.Grads)
		}
	}
	if passed < 10000 {
		t.Errorf("%d of 50000 passed", passed)
	}
}
