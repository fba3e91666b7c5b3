package ops_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestGatedAttention: a gate saves two tensors for backward, the sigmoid's
// result and the gated output, and costs one projection.
func TestGatedAttention(t *testing.T) {
	const tokens, dim, heads, headDim = 16, 64, 4, 8
	shape := ops.Shape{Tokens: tokens, Length: tokens, Batch: 1, Cache: tokens, Precision: costmodel.BF16True, Train: true}
	op := modelgraph.Attention{Dim: dim, Heads: heads, KVHeads: heads, HeadDim: headDim}
	plain := ops.Of(op, &shape)
	op.Gated = true
	gated := ops.Of(op, &shape)
	if got, want := gated.Memory.Saved-plain.Memory.Saved, int64(2*2*tokens*heads*headDim); got != want {
		t.Errorf("the gate saves %d B, want %d", got, want)
	}
	if got, want := gated.FLOPs-plain.FLOPs, 2.0*tokens*dim*heads*headDim; got != want {
		t.Errorf("the gate computes %v FLOPs, want %v", got, want)
	}
}

// TestRotaryCopies: the hook copies cosines and sines, one row per position, or one per token if
// the model makes them so (RopeRows). Training keeps the copies for backward. In generation there
// is a row per position and sequence, so as many rows as tokens.
func TestRotaryCopies(t *testing.T) {
	const batch, length, headDim = 3, 16, 8
	const row = 2 * 2 * headDim // cosine and sine, two bytes each
	for _, c := range []struct {
		train, perToken bool
		rows            int64
	}{{true, false, length}, {true, true, batch * length}, {false, false, batch * length}, {false, true, batch * length}} {
		shape := ops.Shape{Tokens: batch * length, Length: length, Batch: batch, Cache: length, Precision: costmodel.BF16True, Train: c.train}
		if !c.train {
			shape.Cache++
		}
		op := modelgraph.Attention{Dim: 32, Heads: 4, KVHeads: 4, HeadDim: headDim, Rope: true, RopeRows: c.perToken}
		plain := ops.Of(op, &shape)
		shape.RotaryCopies = true
		copied := ops.Of(op, &shape)
		got := copied.Arguments - plain.Arguments
		if c.train {
			got = copied.Memory.Saved - plain.Memory.Saved
		}
		if got != row*c.rows {
			t.Errorf("training %t, rows a token %t: %d B are copied, want %d", c.train, c.perToken, got, row*c.rows)
		}
	}
}
