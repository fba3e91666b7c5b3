package recipe

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// check refuses workloads that the engine has no kernels for.
func (model *model) check() error {
	for _, fault := range []func() error{model.checkSizes, model.checkTypes, model.checkTraining, model.checkOptions} {
		if err := fault(); err != nil {
			return err
		}
	}
	return nil
}

// known refuses incomplete models, if no named layer was at fault.
func (model *model) known() error {
	if len(model.graph.Unknown) == 0 || model.workload.Mode == costmodel.Load {
		return nil
	}
	return refuse("runtime", costmodel.Devmap, "devmap's engine cannot run model %q: %s; another %v plans it", model.graph.Name, strings.Join(model.graph.Unknown, "; "), costmodel.Setting{Field: "runtime"})
}

// worse is the more useful of two errors: an unknown layer explains err.
func (model *model) worse(err error) error {
	if unknown := model.known(); model.loose && unknown != nil {
		return unknown
	}
	return err
}

// warn notes what the engine leaves out.
func (model *model) warn() []costmodel.Message {
	if !model.train {
		return nil
	}
	for i := range model.graph.Layers {
		dropout := false
		switch op := model.graph.Layers[i].Op.(type) {
		case modelgraph.Attention:
			dropout = op.Dropout
		case modelgraph.MLP:
			dropout = op.Dropout
		}
		if dropout {
			return []costmodel.Message{costmodel.Messagef("layer %q has a dropout, and devmap's engine trains without any", model.graph.Layers[i].Name)}
		}
	}
	return nil
}

func (model *model) checkSizes() error {
	workload := model.workload
	switch {
	case workload.Batch < 1:
		return refuse("batch", workload.Batch, "a batch of %d is no work", workload.Batch)
	case workload.MicroBatches < 1 || workload.Batch%workload.MicroBatches != 0:
		return refuse("micro_batches", workload.MicroBatches, "%d does not divide the batch of %d", workload.MicroBatches, workload.Batch)
	case workload.Seq < 1 && workload.Mode != costmodel.Load:
		return refuse("seq", workload.Seq, "sequences of %d tokens are no work", workload.Seq)
	case workload.Seq < 2 && model.train:
		return refuse("seq", workload.Seq, "the only token of a sequence has none behind it to predict, so there is no loss; %v is the shortest", costmodel.Set("seq", 2))
	case workload.NewTokens < 0 || workload.NewTokens > 0 && workload.Mode != costmodel.Infer:
		return refuse("new_tokens", workload.NewTokens, "only %v generates tokens", costmodel.Set("mode", costmodel.Infer))
	case float64(workload.Batch)*float64(workload.Seq+workload.NewTokens) > 1<<40:
		return refuse("batch", workload.Batch, "%d sequences of %d tokens are more than 2^40", workload.Batch, workload.Seq+workload.NewTokens)
	case workload.Images > 0:
		return refuse("images", workload.Images, "devmap's engine runs no vision towers; with %v it runs the language model behind one", costmodel.Set("images", 0))
	}
	return nil
}

func (model *model) checkTypes() error {
	workload := model.workload
	switch workload.Precision {
	case costmodel.FP32True, costmodel.BF16True, costmodel.BF16Mixed:
	case costmodel.FP16Mixed:
		return refuse("precision", workload.Precision, "devmap's engine has no fp16 kernels and no loss scaling; %v has the range of fp32", costmodel.Set("precision", costmodel.BF16Mixed))
	default:
		return refuse("precision", workload.Precision, "devmap's engine has no kernels for it; %v is the nearest that it runs", costmodel.Set("precision", costmodel.BF16True))
	}
	if workload.Quantize != "" {
		return refuse("quantize", workload.Quantize, "devmap's engine has no kernels for quantised weights; without it, it runs %v", costmodel.Set("precision", workload.Precision))
	}
	return nil
}

// checkTraining refuses ways to train.
func (model *model) checkTraining() error {
	workload := model.workload
	switch {
	case workload.LoRARank > 0:
		return refuse("lora_rank", workload.LoRARank, "devmap's engine trains all weights and has no adapters; leave it out")
	case workload.EMA:
		return refuse("ema", workload.EMA, "devmap's engine keeps no average of the weights; leave it out")
	case !model.train:
		return nil
	case workload.Optimizer != costmodel.AdamW && workload.Optimizer != costmodel.SGD:
		nearest := costmodel.AdamW
		if strings.HasPrefix(workload.Optimizer, costmodel.SGD) {
			nearest = costmodel.SGD
		}
		return refuse("optimizer", workload.Optimizer, "devmap's engine has adamw and sgd; %v is the nearest", costmodel.Set("optimizer", nearest))
	case workload.Recompute != "" && workload.Recompute != costmodel.RecomputeNone && workload.Recompute != costmodel.RecomputeFull && workload.Recompute != value.RecomputeAuto && !workload.ListsRecomputed():
		return refuse("recompute", workload.Recompute, "devmap's engine makes norms and products again by itself, and else whole blocks; %v is the nearest", costmodel.Set("recompute", costmodel.RecomputeNone))
	}
	return nil
}

// checkOptions refuses kernels by the names of other engines' ones.
func (model *model) checkOptions() error {
	workload := model.workload
	switch {
	case workload.Loss != "" && model.train:
		return refuse("loss", workload.Loss, "devmap's engine makes logits a part of the vocabulary at a time, and has no other loss; leave it out")
	case workload.Attention != "":
		return refuse("attention", workload.Attention, "devmap's engine has one attention, which keeps no scores; leave it out")
	}
	return nil
}
