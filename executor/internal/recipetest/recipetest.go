// Package recipetest implements the kernels of a recipe in float64, as plainly as possible from
// their dims and operands. It is the reference for the recipe's own gradients, and for every
// backend's kernels. The kernels are slow: give them small matrices.
package recipetest

import "testing"

// kernels are all that a recipe may name.
var kernels = map[string]func(run *kernelRun){
	"gemm": gemm, "norm": normKernel, "norm_again": normKernel, "norm_backward": normBackward,
	"add_rows": columnSums, "column_sums": partialSums, "cast": copyKernel, "copy": copyKernel, "first": firstRows, "last": lastRows,
	"embedding": embeddingKernel, "sort": sortKernel, "embedding_backward": embeddingBackward,
	"activate": activateKernel, "activate_backward": activateBackward, "gate": gateKernel, "gate_backward": gateBackward,
	"softmax_sums": softmaxSums, "loss": lossKernel, "count": countLabels, "loss_backward": lossBackward, "softcap": softcapKernel, "argmax": argmaxKernel,
	"rope": ropeKernel, "rope_backward": ropeBackward, "qknorm": qknormKernel, "qknorm_backward": qknormBackward,
	"attention": attentionKernel, "attention_delta": attentionDelta, "attention_backward": attentionBackward,
	"cache": cacheKernel, "attention_decode": attentionDecode, "attention_join": attentionJoin,
	"square": squareKernel, "adamw": adamwKernel, "sgd": sgdKernel,
}

// Run runs the kernel. A kernel that lacks an operand or a dim ends the test.
func (call *Call) Run(tb testing.TB) {
	tb.Helper()
	kernel := kernels[call.Kernel.Name]
	if kernel == nil {
		tb.Fatalf("there is no kernel %q", call.Kernel.Name)
	}
	run := &kernelRun{Call: call, tb: tb, dims: make(map[string]string), operands: make(map[string]int)}
	for _, dim := range call.Kernel.Dims {
		run.dims[dim.Name] = dim.Value
	}
	for i, operand := range call.Kernel.Operands {
		run.operands[operand.Role] = i
	}
	if run.has("dim") {
		run.dim = run.size("dim")
	}
	if run.has("scale") {
		run.factored = run.number("scale")
	}
	kernel(run)
}
