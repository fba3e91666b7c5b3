package kernel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// layout is a case of attention.
type layout struct {
	sequences, seq, heads, kv, dim int64
	more                           string
}

// layouts are odd ones: on both sides of a block's border, windows of one key
// and of more than all, one head of keys for many.
var layouts = []layout{
	{1, 1, 1, 1, 8, "causal=1"},
	{2, 63, 4, 2, 8, "causal=1 window=3"},
	{1, 64, 3, 1, 80, "causal=1"},
	{1, 65, 2, 2, 80, "causal=1 window=1"},
	{2, 129, 2, 1, 8, "causal=1 window=200"},
	{1, 129, 1, 1, 256, "causal=1"},
	{1, 129, 4, 2, 8, "causal=1 window=64 cap=50"},
	{2, 65, 2, 1, 8, "cap=1.5"},
	{1, 193, 2, 2, 16, ""},
	{1, 257, 2, 1, 16, "causal=1 window=130"},
}

func (layout *layout) dims() string {
	return fmt.Sprintf("sequences=%d heads=%d kv=%d dim=%d seq=%d %s scale=%v", layout.sequences, layout.heads, layout.kv, layout.dim, layout.seq, layout.more, 1/math.Sqrt(float64(layout.dim)))
}

func (layout *layout) forward(t *testing.T, random *rand.Rand, dtype modelgraph.DType) *trial {
	t.Helper()
	rows := layout.sequences * layout.seq
	trial := newTrial(t, random, "attention", layout.dims())
	trial.least = 1 // of a single score next to 0
	return trial.
		with("q", dtype, rows, layout.heads*layout.dim, 1).
		with("k", dtype, rows, layout.kv*layout.dim, 1).
		with("v", dtype, rows, layout.kv*layout.dim, 1).
		with(">y", dtype, rows, layout.heads*layout.dim, 0).
		with(">lse", modelgraph.F32, rows, layout.heads, 0)
}

// backward is a trial of backward on what forward left.
func (layout *layout) backward(t *testing.T, random *rand.Rand, dtype modelgraph.DType, made *trial) *trial {
	t.Helper()
	rows := layout.sequences * layout.seq
	trial := newTrial(t, random, "attention_backward", layout.dims())
	trial.least = 1 // the gradients of a query that sees one key are 0
	for i, role := range []string{"q", "k", "v"} {
		trial.same(role, made, i)
	}
	trial.with("dy", dtype, rows, layout.heads*layout.dim, 1).same("lse", made, 4)
	delta := newTrial(t, random, "attention_delta", fmt.Sprintf("rows=%d heads=%d dim=%d", rows, layout.heads, layout.dim))
	delta.least = 1
	delta.same("y", made, 3).same("dy", trial, 3).with(">delta", modelgraph.F32, rows, layout.heads, 0).run(1e-6, 1e-6)
	return trial.same("delta", delta, 2).with(">dq", dtype, rows, layout.heads*layout.dim, 0).with(">dk", dtype, rows, layout.kv*layout.dim, 0).with(">dv", dtype, rows, layout.kv*layout.dim, 0).run(1e-6, 1e-2)
}

func TestAttention(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, layout := range layouts {
			made := layout.forward(t, random, dtype).run(1e-6, 1e-2)
			layout.backward(t, random, dtype, made)
		}
	}
}

// TestAttentionAlone: where queries see one key each, nothing depends on it or
// them, exactly.
func TestAttentionAlone(t *testing.T) {
	random := seeded(t)
	layout := &layout{2, 65, 4, 2, 80, "causal=1 window=1"}
	made := layout.forward(t, random, modelgraph.BF16).run(1e-6, 1e-2)
	back := layout.backward(t, random, modelgraph.BF16, made)
	for _, gradient := range []*operand{&back.tests[6], &back.tests[7]} {
		for i := range gradient.Rows {
			for j := range gradient.Columns {
				if got := gradient.at(i, j); got != 0 {
					t.Fatalf("row %d, column %d of a gradient: %v", i, j, got)
				}
			}
		}
	}
}

// TestAttentionThreads: the bits do not depend on how many threads there are.
func TestAttentionThreads(t *testing.T) {
	layout := &layout{2, 129, 4, 2, 80, "causal=1 window=70"}
	run := func(threads int) string {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
		random := rand.New(rand.NewPCG(12, 1))
		made := layout.forward(t, random, modelgraph.BF16).run(1e-6, 1e-2)
		back := layout.backward(t, random, modelgraph.BF16, made)
		norms := newTrial(t, random, "qknorm_backward", "rows=700 heads=8 kv=4 dim=16 seq=350 style=rms epsilon=1e-5 rope=default width=16 base=10000").
			with("q", modelgraph.F32, 700, 128, 1).with("k", modelgraph.F32, 700, 64, 1).with("qweight", modelgraph.F32, 1, 16, 1).with("kweight", modelgraph.F32, 1, 16, 1).
			with("+dq", modelgraph.F32, 700, 128, 1).with("+dk", modelgraph.F32, 700, 64, 1).with(">qsums", modelgraph.F32, 128, 16, 0).with(">ksums", modelgraph.F32, 128, 16, 0).run(1e-6, 1e-2)
		return made.bits() + back.bits() + norms.bits()
	}
	if run(1) != run(7) {
		t.Error("one thread and seven leave other bits")
	}
}

// BenchmarkAttention is forward over 1,024 tokens, of 32 heads of 64 values.
func BenchmarkAttention(b *testing.B) {
	for _, dtype := range dtypes {
		b.Run(dtype.String(), func(b *testing.B) {
			layout := &layout{1, 1024, 32, 8, 64, "causal=1"}
			trial := layout.forward(new(testing.T), rand.New(rand.NewPCG(12, 2)), dtype)
			for b.Loop() {
				trial.only(b)
			}
			products := 2 * 2 * float64(layout.seq*(layout.seq+1)/2) * float64(layout.heads*layout.dim)
			b.ReportMetric(products*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
