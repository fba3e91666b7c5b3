package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
)

// lightning is PyTorch Lightning 2.6 on DDP. The optimizer is stepped with a closure that runs
// training_step, zero_grad and backward in this order
// (pytorch_lightning/loops/optimization/automatic.py, Closure.closure), so that the last step's
// gradients are alive during forward and the loss. Its precision plugins are what the precisions
// are named after: "true" converts the module (plugins/precision/half.py), "mixed" runs
// training_step under autocast on fp32 weights (plugins/precision/amp.py).
type lightning struct{ ddp }

// Rules: the requests of its step, whose gradients go when backward begins, are not followed.
func (engine lightning) Rules(workload *costmodel.Workload) layers.Rules {
	rules := engine.ddp.Rules(workload)
	rules.Rests = nil
	return rules
}

func (engine lightning) Finish(model *layers.Model, table *costmodel.Table) {
	engine.ddp.Finish(model, table)
	table.LastGradients = model.Train
}
