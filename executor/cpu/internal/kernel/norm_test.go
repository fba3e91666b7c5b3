package kernel_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestNorms: of every style; in place as inference has them, added to the
// stream, made again, and backward into what comes in.
func TestNorms(t *testing.T) {
	random := seeded(t)
	for _, dtype := range dtypes {
		for _, style := range []modelgraph.NormStyle{modelgraph.RMSNorm, modelgraph.GemmaRMSNorm, modelgraph.LayerNorm} {
			for _, shape := range [][2]int64{{1, 9}, {3, 17}, {130, 33}, {40, 1500}} {
				normsOf(t, dtype, shape[0], shape[1], style, func(name string) *trial {
					return newTrial(t, random, name, fmt.Sprintf("rows=%d columns=%d style=%s epsilon=1e-05", shape[0], shape[1], style)).
						with("x", dtype, shape[0], shape[1], 2).with("weight", dtype, 1, shape[1], 1)
				})
			}
		}
	}
}

func normsOf(t *testing.T, dtype modelgraph.DType, rows, columns int64, style modelgraph.NormStyle, made func(name string) *trial) {
	t.Helper()
	layer := style == modelgraph.LayerNorm
	biased := func(name string) *trial {
		trial := made(name)
		if layer {
			trial.with("bias", dtype, 1, columns, 1)
		}
		return trial
	}
	biased("norm").over(">y", 0).run(1e-6, 1e-2)
	biased("norm").with("add", dtype, rows, columns, 1).with(">y", dtype, rows, columns, 1).run(1e-6, 1e-2)
	saved := biased("norm").with(">y", dtype, rows, columns, 1).with(">rstd", modelgraph.F32, rows, 1, 1)
	if layer {
		saved.with(">mean", modelgraph.F32, rows, 1, 1)
	}
	saved.run(1e-6, 1e-2)

	again := newTrial(t, saved.random, "norm_again", saved.dims())
	back := newTrial(t, saved.random, "norm_backward", saved.dims())
	for i := range saved.tests {
		if operand := saved.kernel.Operands[i]; operand.Role == "y" {
			again.with(">y", dtype, rows, columns, 1)
		} else {
			again.same(operand.Role, saved, i)
			back.same(operand.Role, saved, i)
		}
	}
	again.run(1e-6, 1e-2)
	for i, operand := range saved.kernel.Operands {
		if operand.Role == "y" && !again.equal(i, saved) {
			t.Errorf("%s: made again it is something else", saved.line())
		}
	}
	parts := min(rows, 128)
	back.with("dy", dtype, rows, columns, 1).with("add", dtype, rows, columns, 1).over(">dx", len(back.tests)-1).with(">sums", modelgraph.F32, parts, columns, 1)
	if layer {
		back.with(">biases", modelgraph.F32, parts, columns, 1)
	}
	back.least = 0.1
	back.run(1e-6, 1e-2)
}
