package recipe

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// check refuses workloads that the engine has no kernels for.
func (m *model) check() error {
	for _, fault := range []func() error{m.checkSizes, m.checkTypes, m.checkTraining, m.checkOptions} {
		if err := fault(); err != nil {
			return err
		}
	}
	return nil
}

// known refuses models that do not say all that running them needs, where no
// layer was at fault that can be named.
func (m *model) known() error {
	if len(m.graph.Unknown) == 0 || m.workload.Mode == costmodel.Load {
		return nil
	}
	return refuse("runtime", costmodel.Devmap, "devmap's engine cannot run model %q: %s", m.graph.Name, strings.Join(m.graph.Unknown, "; "))
}

// warn says what the engine leaves out.
func (m *model) warn() []costmodel.Message {
	if !m.train {
		return nil
	}
	for i := range m.graph.Layers {
		dropout := false
		switch op := m.graph.Layers[i].Op.(type) {
		case modelgraph.Attention:
			dropout = op.Dropout
		case modelgraph.MLP:
			dropout = op.Dropout
		}
		if dropout {
			return []costmodel.Message{costmodel.Messagef("layer %q has a dropout, and devmap's engine trains without any", m.graph.Layers[i].Name)}
		}
	}
	return nil
}

func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}

func (m *model) checkSizes() error {
	workload := m.workload
	switch {
	case workload.Batch < 1:
		return refuse("batch", workload.Batch, "a batch of %d is no work", workload.Batch)
	case workload.MicroBatches < 1 || workload.Batch%workload.MicroBatches != 0:
		return refuse("micro_batches", workload.MicroBatches, "%d does not divide the batch of %d", workload.MicroBatches, workload.Batch)
	case workload.Seq < 1 && workload.Mode != costmodel.Load:
		return refuse("seq", workload.Seq, "sequences of %d tokens are no work", workload.Seq)
	case workload.NewTokens < 0 || workload.NewTokens > 0 && workload.Mode != costmodel.Infer:
		return refuse("new_tokens", workload.NewTokens, "only %v generates tokens", costmodel.Set("mode", costmodel.Infer))
	case float64(workload.Batch)*float64(workload.Seq+workload.NewTokens) > 1<<40:
		return refuse("batch", workload.Batch, "%d sequences of %d tokens are more than 2^40", workload.Batch, workload.Seq+workload.NewTokens)
	case workload.Images > 0:
		return refuse("images", workload.Images, "devmap's engine runs no vision towers; with %v it runs the language model behind one", costmodel.Set("images", 0))
	}
	return nil
}

func (m *model) checkTypes() error {
	workload := m.workload
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
func (m *model) checkTraining() error {
	workload := m.workload
	switch {
	case workload.LoRARank > 0:
		return refuse("lora_rank", workload.LoRARank, "devmap's engine trains all weights and has no adapters; leave it out")
	case workload.EMA:
		return refuse("ema", workload.EMA, "devmap's engine keeps no average of the weights; leave it out")
	case !m.train:
		return nil
	case workload.Optimizer != costmodel.AdamW && workload.Optimizer != costmodel.SGD:
		nearest := costmodel.AdamW
		if strings.HasPrefix(workload.Optimizer, costmodel.SGD) {
			nearest = costmodel.SGD
		}
		return refuse("optimizer", workload.Optimizer, "devmap's engine has adamw and sgd; %v is the nearest", costmodel.Set("optimizer", nearest))
	case workload.Recompute != "" && workload.Recompute != costmodel.RecomputeNone && workload.Recompute != costmodel.RecomputeFull:
		return refuse("recompute", workload.Recompute, "devmap's engine makes norms and products again by itself, and else whole blocks; %v is the nearest", costmodel.Set("recompute", costmodel.RecomputeNone))
	}
	return nil
}

// checkOptions refuses kernels by the names of other engines' ones.
func (m *model) checkOptions() error {
	workload := m.workload
	switch {
	case workload.Loss != "" && m.train:
		return refuse("loss", workload.Loss, "devmap's engine makes logits a part of the vocabulary at a time, and has no other loss; leave it out")
	case workload.Attention != "":
		return refuse("attention", workload.Attention, "devmap's engine has one attention, which keeps no scores; leave it out")
	}
	return nil
}

// storage reports a layer without an operation that holds what others run:
// each of its parameters is tied to one of theirs, and nothing reads it (BERT's
// prediction bias).
func (m *model) storage(index int) bool {
	layer := &m.graph.Layers[index]
	if m.read == nil {
		m.relations()
	}
	for j := range layer.Params {
		if !m.tied[modelgraph.FullName(layer.Name, layer.Params[j].Name)] {
			return false
		}
	}
	return !m.read[index]
}

// relations notes which layers are read and which parameters are tied.
func (m *model) relations() {
	m.read, m.tied = make([]bool, len(m.graph.Layers)), make(map[string]bool)
	for i := range m.graph.Layers {
		for _, j := range m.graph.Layers[i].InputLayers() {
			m.read[j] = true
		}
	}
	for _, names := range m.graph.Ties {
		for _, name := range names {
			m.tied[name] = len(names) > 1
		}
	}
}
