package ops

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestContracted: Mamba-2 by einsum (Transformers 5.18) has no products of pairs of tokens and
// states. Sizes are of a NemotronH cell that was followed without a GPU: its forward took 2,162 MiB,
// with weights and workspace of 0.4 GiB.
func TestContracted(t *testing.T) {
	mixer := modelgraph.StateSpace{Dim: 1536, Inner: 8192, State: 128, Kernel: 4, Heads: 128, Groups: 8, Chunk: 128}
	shape := &Shape{Precision: costmodel.BF16True, Batch: 3, Tokens: 3 * 768, Length: 768}
	sums := stateSpace{StateSpace: mixer}.cost(shape).Memory.Forward
	mixer.Contracted = true
	einsum := stateSpace{StateSpace: mixer}.cost(shape).Memory.Forward
	if einsum < 1600<<20 || einsum > 1800<<20 || sums < 10*einsum {
		t.Errorf("forward takes %d MiB, by sums %d MiB", einsum>>20, sums>>20)
	}
}

// TestBiasCopied: with a contiguous bias (Transformers 5.20) T5 keeps no scores in fp32 for backward,
// but a copy of the bias.
func TestBiasCopied(t *testing.T) {
	op := attention{Attention: modelgraph.Attention{
		Dim: 512, Heads: 8, KVHeads: 8, HeadDim: 64, Eager: true, Unfused: true, ScoreBias: "relative", Bidirectional: true,
	}}
	shape := &Shape{Precision: costmodel.BF16True, Batch: 4, Tokens: 4 * 1024, Length: 1024, Train: true}
	math := op.cost(shape).Memory.Saved
	op.BiasCopied = true
	fused := op.cost(shape).Memory.Saved
	scores, bias := int64(4*4*8<<20), int64(2*8<<20) // fp32 of 4 sequences; one bias in 16 bits
	if fused > math-scores+bias || fused < bias {
		t.Errorf("fused attention saves %d MiB, the math kernel %d MiB", fused>>20, math>>20)
	}
}
