package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
)

// lightning is PyTorch Lightning 2.6 on DDP. Its optimizer runs a closure: training_step,
// zero_grad, backward (pytorch_lightning/loops/optimization/automatic.py, Closure.closure). So the
// last step's gradients are alive during forward and the loss. "true" precision converts the module
// (plugins/precision/half.py); "mixed" runs training_step under autocast on fp32 weights
// (plugins/precision/amp.py).
type lightning struct{ ddp }

// Rules: the step's requests are not followed, as its old gradients go when backward begins.
func (engine lightning) Rules(workload *costmodel.Workload) layers.Rules {
	rules := engine.ddp.Rules(workload)
	rules.Rests = nil
	return rules
}

func (engine lightning) Finish(model *layers.Model, table *costmodel.Table) {
	engine.ddp.Finish(model, table)
	table.LastGradients = model.Train
}
