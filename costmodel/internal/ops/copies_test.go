package ops_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestIndexerCopies: with several sequences, torch.matmul copies an indexer's keys for each query,
// in fp32. A wide key makes the moment of that copy the peak.
func TestIndexerCopies(t *testing.T) {
	const tokens, length, width = 64, 32, 4096
	op := modelgraph.Attention{Dim: 8, Heads: 1, KVHeads: 1, HeadDim: 4, ValueDim: 4, RopeDim: 2, QRank: 4, KVRank: 4, IndexHeads: 1, IndexDim: width, IndexTopK: 8}
	forward := func(batch int64) int64 {
		shape := ops.Shape{Tokens: tokens, Length: length, Cache: length, Batch: batch, Precision: costmodel.BF16True}
		memory := ops.Of(op, &shape).Memory
		return memory.Forward - memory.KV
	}
	if grows := forward(2) - forward(1); grows != 4*width*tokens*length {
		t.Errorf("a second sequence takes %d B more, want %d", grows, 4*width*tokens*length)
	}
}

// TestExpertCopies: generate() copies the three matrices of each token's experts for a decode step,
// unless every expert is computed for every token.
func TestExpertCopies(t *testing.T) {
	const batch, topK, dim, hidden = 3, 2, 64, 512
	const copies = 2 * batch * topK * 3 * dim * hidden
	for _, c := range []struct {
		name         string
		train, dense bool
		length       int64 // of a cache of 9 tokens
		copied       bool
	}{
		{"a token", false, false, 1, true},
		{"the whole prompt", false, false, 9, false},
		{"training", true, false, 1, false},
		{"every expert", false, true, 1, false},
	} {
		shape := ops.Shape{Train: c.train, Tokens: batch * c.length, Length: c.length, Cache: 9, Batch: batch, Precision: costmodel.BF16True}
		op := modelgraph.MoE{Dim: dim, Hidden: hidden, Experts: 8, TopK: topK, Dense: c.dense, Activation: "silu"}
		if got := ops.Of(op, &shape).Memory.Forward; (got == copies) != c.copied || got > copies {
			t.Errorf("%s: %d B, the copies are %d B", c.name, got, copies)
		}
	}
}
