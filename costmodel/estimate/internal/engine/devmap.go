package engine

import (
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/recipe"
)

// devmap is devmap's own engine. It runs the kernels of its recipe (package recipe), casts all weights
// to one type, and plans every byte before it runs. Its units' regions replace the ops' figures.
type devmap struct{ base }

// Precision: all weights have one type.
func (devmap) Precision(stored costmodel.Precision) (costmodel.Precision, bool) { return stored, false }

// Refuse names what no kernel does.
func (devmap) Refuse(workload *costmodel.Workload) error {
	for _, refused := range []struct {
		when         bool
		field, value string
		why          string
		instead      any
	}{
		{ops.HalfPrecision(workload.Precision), "precision", string(workload.Precision), "computes in bf16 or fp32", costmodel.Set("precision", costmodel.BF16True)},
		{workload.Quantize != "", "quantize", workload.Quantize, "multiplies no packed weights", costmodel.Set("quantize", "off")},
		{workload.LoRARank > 0, "lora_rank", costmodel.Set("", workload.LoRARank).Value, "trains all of the model", costmodel.Set("lora_rank", 0)},
		{workload.Images > 0, "images", costmodel.Set("", workload.Images).Value, "runs text alone", costmodel.Set("images", 0)},
	} {
		if refused.when {
			return refuseDevmap(refused.field, refused.value, refused.why, refused.instead)
		}
	}
	if attention := workload.Attention; attention != "" && attention != value.SDPA && workload.Mode != costmodel.Load {
		return refuseDevmap("attention", attention, "has one kernel of attention, fused", costmodel.Set("attention", value.SDPA))
	}
	if workload.Mode == costmodel.Train {
		return refuseTraining(workload)
	}
	return nil
}

// refuseTraining names what no kernel of a training step does.
func refuseTraining(workload *costmodel.Workload) error {
	switch loss, rule := workload.Loss, workload.Optimizer; {
	case rule != "" && rule != costmodel.AdamW && rule != costmodel.SGD:
		return refuseDevmap("optimizer", rule, "updates weights by AdamW or SGD", costmodel.Set("optimizer", costmodel.AdamW))
	case loss != "" && loss != value.LossEager:
		return refuseDevmap("loss", loss, "has one kernel of the loss, over all logits", costmodel.Set("loss", value.LossEager))
	case workload.LossOnly:
		return refuseDevmap("loss_only", "true", "hands out the losses alone in any case, and writes the logits' gradient over them", costmodel.Set("loss_only", false))
	case workload.EMA:
		return refuseDevmap("ema", "true", "keeps no moving average", costmodel.Set("ema", false))
	}
	return nil
}

func refuseDevmap(field, value, why string, instead any) error {
	return costmodel.Refuse(costmodel.Set(field, value), "devmap's own engine %s (%v works for the models that it runs, or another %v)", why, instead, costmodel.Setting{Field: "runtime"})
}

func (devmap) Rules(workload *costmodel.Workload) layers.Rules {
	// Each stage that uses a tied parameter has a copy of it.
	return layers.Rules{Compute: gathered(workload.Precision), Masters: true, GradsPersist: workload.MicroBatches > 1 || workload.Schedule.Split(), Untied: workload.Strategy.Traits().Staged}
}

// Regions sets the recipe's regions. It refuses a model without kernels.
func (devmap) Regions(model *layers.Model, table *costmodel.Table) error {
	plan, err := recipe.Of(model.Tied, &model.Workload) // copies of a tied weight are the recipe's to count
	var known *costmodel.FieldError
	if errors.As(err, &known) {
		return err
	}
	if err != nil {
		return costmodel.Refuse(costmodel.Set("runtime", costmodel.Devmap), "%v", err)
	}
	table.Workspaces = 1
	if table.Additive {
		table.Workspaces = 0
	}
	before := int64(0) // the previous unit's message
	for i := range table.Units {
		unit, from := &table.Units[i], &plan.Units[i]
		unit.Regions, unit.Layers = from.Regions, nil
		unit.Padding, unit.StatePadding, unit.StepTransient, unit.ResidentGrads, unit.AutocastCopies, unit.CheckpointedOutput, unit.LastBackward = 0, 0, 0, 0, 0, 0, 0
		unit.Recompute = len(from.Code.Recompute.Kernels) > 0
		unit.OptimizerState = from.Master + from.State
		if !from.Passes {
			before = from.Output
		}
		unit.Output, unit.Work.Output = before, before
		code, work := from.Code, &unit.Work
		work.Forward, work.Recompute, work.Backward, work.Token = code.Forward.Work, code.Recompute.Work, code.Backward.Work, code.Decode.Work
		work.Learn = code.Learn.Work
		work.Update = code.Norms.Work.Traffic + code.Step.Work.Traffic
		table.Step, table.StepUpdate = layers.Both(table.Step, layers.Both(work.Forward, layers.Both(work.Backward, work.Learn))), table.StepUpdate+work.Update
		table.Step.Kernels, table.Step.Traffic = table.Step.Kernels-code.Copied.Kernels, table.Step.Traffic-code.Copied.Traffic
	}
	table.Warnings = append(table.Warnings, plan.Warnings...)
	return nil
}
