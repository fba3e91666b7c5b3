// Package recipetest has the kernels that a recipe names in float64, each as
// plain as it can be written from what its dims and operands say: the judge of
// the recipe's own gradients, and of every backend's kernels. They are slow;
// give them small matrices.
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
	"attention": attentionKernel, "attention_delta": attentionDelta, "attention_dkv": attentionBackward, "attention_dq": attentionBackward,
	"cache": cacheKernel, "attention_decode": attentionDecode, "attention_join": attentionJoin,
	"square": squareKernel, "adamw": adamwKernel, "sgd": sgdKernel,
}

// Run carries the kernel out. A kernel that lacks what it needs ends the test.
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
