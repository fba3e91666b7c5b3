package kernel

import "fmt"

// kernels are those that a recipe may name.
var kernels = map[string]func(call *Call) error{
	"activate":          activate,
	"activate_backward": activateBackward,
	"adamw":             adamw,
	"add_rows":          addRows,
	"cast":              copyRows,
	"column_sums":       columnSums,
	"copy":              copyRows,
	"embedding":         embedding,
	"first":             firstRows,
	"gate":              gate,
	"gate_backward":     gateBackward,
	"gemm":              gemm,
	"last":              lastRows,
	"norm":              norm,
	"norm_again":        norm,
	"norm_backward":     normBackward,
	"sgd":               sgd,
	"sort":              sortIDs,
	"square":            square,

	"embedding_backward": embeddingBackward,
}

// Run carries a kernel out. An error is a kernel that does not exist, or lacks
// what it needs: a defect of the recipe, never of the data.
func Run(call *Call) error {
	run := kernels[call.Kernel.Name]
	if run == nil {
		return fmt.Errorf("there is no kernel %q", call.Kernel.Name)
	}
	return run(call)
}
