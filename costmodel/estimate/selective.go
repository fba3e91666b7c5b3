package estimate

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// checkSelective refuses selective recompute where no engine does it:
// Transformers' gradient_checkpointing_enable, which Accelerate, Lightning and
// DeepSpeed users call, has whole blocks alone. What is meant is torchtitan's.
func checkSelective(w *costmodel.Workload) error {
	if w.Recompute != costmodel.RecomputeSelective || w.Mode != costmodel.Train || w.Runtime == costmodel.Torch {
		return nil
	}
	return &costmodel.FieldError{Field: "recompute", Msg: costmodel.Messagef("selective is torchtitan's (of a block, attention's output and every second product are kept); under %v blocks are recomputed whole: full and none work, or selective with %v, hsdp, ddp or pipeline and %v", costmodel.Set("runtime", w.Runtime), costmodel.Set("strategy", "fsdp"), costmodel.Set("runtime", "torch"))}
}

// recomputes reports that blocks run again in backward.
func (e *estimator) recomputes() bool {
	return e.w.Recompute == costmodel.RecomputeFull || e.w.Recompute == costmodel.RecomputeSelective
}

// keepSelected notes what stays of a recomputed unit's layers.
func (e *estimator) keepSelected(u int, out *costmodel.Unit) {
	if e.w.Recompute != costmodel.RecomputeSelective || !out.Recompute {
		return
	}
	var c ops.Selective
	for n, i := range e.g.Units[u].Exec {
		s := e.shape(i)
		if s.Tokens > 0 {
			out.Steps[n].Kept = min(c.Kept(e.g.Layers[i].Op, &s, biases(&e.g.Layers[i])), out.Steps[n].Forward)
		}
	}
}

// biases counts the linear layers of a layer that have one.
func biases(l *modelgraph.Layer) int {
	n := 0
	for i := range l.Params {
		below, bias := strings.CutSuffix(l.Params[i].Name, "bias")
		if bias && !strings.Contains(below, "norm") && len(l.Params[i].Shape) == 1 {
			n++
		}
	}
	return n
}
