package kernel

import "fmt"

// kernels are the kernels that a recipe may name.
var kernels = map[string]func(call *Call) error{
	"activate":           activate,
	"activate_backward":  activateBackward,
	"adamw":              adamw,
	"add_rows":           addRows,
	"argmax":             needs(argmax, "x", "y"),
	"attention":          needs(attention, "q", "k", "v", "y"),
	"attention_backward": needs(attentionBackward, "q", "k", "v", "dy", "lse", "delta", "dq", "dk", "dv"),
	"attention_decode":   needs(attentionDecode, "q", "keys", "values"),
	"attention_delta":    needs(attentionDelta, "y", "dy", "delta"),
	"attention_join":     needs(attentionJoin, "parts", "y"),
	"cache":              needs(cache, "k", "v", "keys", "values"),
	"cast":               copyRows,
	"column_sums":        columnSums,
	"copy":               copyRows,
	"count":              needs(count, "labels", "y"),
	"embedding":          embedding,
	"embedding_backward": embeddingBackward,
	"first":              firstRows,
	"gate":               gate,
	"gate_backward":      gateBackward,
	"gemm":               gemm,
	"last":               lastRows,
	"loss":               needs(loss, "sums", "labels", "lse", "loss"),
	"loss_backward":      needs(lossBackward, "x", "lse", "labels", "counted"),
	"norm":               norm,
	"norm_again":         norm,
	"norm_backward":      normBackward,
	"qknorm":             needs(qknorm, "q", "k", "qweight", "kweight", "yq", "yk"),
	"qknorm_backward":    needs(qknormBackward, "q", "k", "qweight", "kweight", "dq", "dk", "qsums", "ksums"),
	"rope":               needs(rope, "q", "k"),
	"rope_backward":      needs(ropeBackward, "dq", "dk"),
	"sgd":                sgd,
	"softcap":            needs(softcap, "x"),
	"softmax_sums":       needs(softmaxSums, "x", "labels", "sums"),
	"sort":               sortIDs,
	"square":             square,
}

// needs returns a kernel that first checks the operands of roles.
func needs(run func(call *Call) error, roles ...string) func(call *Call) error {
	return func(call *Call) error {
		if _, err := call.need(roles...); err != nil {
			return err
		}
		return run(call)
	}
}

// Run runs a kernel. An error means that it does not exist, or lacks an operand or a dim: a defect
// of the recipe, never of the data.
func Run(call *Call) error {
	run := kernels[call.Kernel.Name]
	if run == nil {
		return fmt.Errorf("there is no kernel %q", call.Kernel.Name)
	}
	return run(call)
}
