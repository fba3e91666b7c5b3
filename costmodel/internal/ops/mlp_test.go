package ops_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// mlpShape returns a training micro-batch with gradients for the matrices and, on request, the
// biases.
func mlpShape(op modelgraph.MLP, n int64, p costmodel.Precision, biases bool) ops.Shape {
	matrices := int64(2)
	if op.Gated {
		matrices = 3
	}
	weights := matrices * op.Dim * op.Hidden
	if biases {
		weights += op.Dim + op.Hidden
	}
	return ops.Shape{Tokens: n, Length: n, Batch: 1, Train: true, Precision: p, Weights: weights, NewGrads: ops.WeightBytes(p) * weights}
}

// TestMLPKeeps counts the bytes that an MLP of 32 tokens, 64 → 96 → 64, keeps in bf16 in addition
// to its input, tensor by tensor.
func TestMLPKeeps(t *testing.T) {
	const n, dim, hidden = 32, 64, 96
	const wide, stream = 2 * n * hidden, 2 * n * dim
	for _, c := range []struct {
		op   modelgraph.MLP
		want int64
	}{
		{modelgraph.MLP{Activation: "relu"}, wide},                                           // its derivative needs only the result
		{modelgraph.MLP{Activation: "gelu"}, 2 * wide},                                       // and the input
		{modelgraph.MLP{Activation: "gelu_new"}, 5 * wide},                                   // and four steps of the formula
		{modelgraph.MLP{Activation: "silu", Gated: true}, 4 * wide},                          // gate, its activation, up, the product
		{modelgraph.MLP{Activation: "silu", Gated: true, Fused: true}, 4 * wide},             // gate and up as views of one
		{modelgraph.MLP{Activation: "gelu", LayerScale: true}, 2*wide + stream},              // the result, for the scale's gradient
		{modelgraph.MLP{Activation: "silu", Gated: true, LayerScale: true}, 4*wide + stream}, // the same with a gate
		{modelgraph.MLP{Activation: "gelu", Dropout: true}, 2*wide + n*dim},                  // a mask of bytes
		{modelgraph.MLP{Activation: "silu", Gated: true, LayerScale: true, Dropout: true}, 4*wide + stream + n*dim},
	} {
		c.op.Dim, c.op.Hidden = dim, hidden
		s := mlpShape(c.op, n, costmodel.BF16True, false)
		if got := ops.Of(c.op, &s).Memory.Saved; got != c.want {
			t.Errorf("%+v keeps %d B, want %d", c.op, got, c.want)
		}
	}
}

// TestScaleInBackward: backward's largest moment is the sum of the first bias's gradient, after the
// scale's tensor is freed. So the peak is the same with and without a scale (InternVL's tower, four
// images of 1025 tokens).
func TestScaleInBackward(t *testing.T) {
	plain := modelgraph.MLP{Dim: 1024, Hidden: 4096, Activation: "gelu"}
	scaled := plain
	scaled.LayerScale = true
	s := mlpShape(plain, 4100, costmodel.BF16True, true)
	a, b := ops.Of(plain, &s).Memory, ops.Of(scaled, &s).Memory
	if saved := int64(2 * 4100 * 1024); b.Saved != a.Saved+saved || b.Saved+b.Backward != a.Saved+a.Backward {
		t.Errorf("a scale keeps %d B and adds %d to backward's peak of %d, want %d and 0",
			b.Saved-a.Saved, b.Saved+b.Backward-a.Saved-a.Backward, a.Saved+a.Backward, saved)
	}
}

// TestTitanExperts checks the saved bytes of torchtitan 0.3's MoE module, and the bytes that its
// backward adds. They are counts of live storages on a CPU, one rank of torch's fake process group,
// with even routing (2026-11-29, torch 2.15). The tensors of token counts and offsets are not
// included.
func TestTitanExperts(t *testing.T) {
	for _, row := range []struct{ dim, hidden, experts, topK, tokens, gpus, shared, saved, over int64 }{
		{256, 128, 16, 2, 1024, 4, 0, 6459472, 6299648},
		{512, 256, 16, 2, 1024, 1, 0, 12750976, 12591104},
		{256, 512, 64, 8, 512, 8, 0, 23955744, 12599296},
		{256, 128, 32, 4, 1024, 4, 512, 16060576, 9715712},
		{256, 1024, 32, 1, 64, 4, 0, 732064, 12189696},
	} {
		op := modelgraph.MoE{Dim: row.dim, Hidden: row.hidden, Experts: row.experts, TopK: row.topK, SharedHidden: row.shared, Activation: "silu"}
		stream := 2 * row.dim * row.tokens
		shape := ops.Shape{
			Tokens: row.tokens, Length: row.tokens, Batch: 1, Train: true, Precision: costmodel.BF16True, Modules: ops.Torchtitan, Followed: true,
			Routed: row.topK * row.tokens, Dispatched: row.gpus > 1, NewGrads: 2 * row.dim * (3*row.hidden*row.experts/row.gpus + 3*row.shared + row.experts),
		}
		memory := ops.Of(op, &shape).Memory
		saved := memory.Saved + 4*row.experts + 4*row.experts/row.gpus
		if row.shared == 0 {
			saved += stream // the norm's output, which the module does not keep
		}
		if over := memory.Backward - stream; saved != row.saved || over > row.over || 100*over < 99*row.over {
			t.Errorf("%+v: %d saved, %d over", row, saved, over)
		}
	}
}
