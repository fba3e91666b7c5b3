package estimate

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/modelgraph"
)

// defaultSeq is the sequence length where none is given and the model takes
// it.
const defaultSeq = 2048

// maxTokens bounds a workload so that no product of sizes overflows.
const maxTokens = 1 << 32

// refuse is the error that a field has a value which does not go with the rest
// of the workload or with the model.
func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}

// Resolve fills in what the workload leaves open for this model: lengths,
// precision, and what follows from the strategy and its engine. Faults are
// [*costmodel.FieldError].
func Resolve(g *modelgraph.Graph, w costmodel.Workload) (costmodel.Workload, error) {
	if w.Seq == 0 {
		w.Seq = defaultSeq
		if g.MaxSeq > 0 {
			w.Seq = min(w.Seq, g.MaxSeq)
		}
		w.Seq = roomBefore(g, w.Seq, w.NewTokens)
	}
	if w.TargetSeq == 0 {
		w.TargetSeq = w.Seq
	}
	w.Batch, w.MicroBatches = cmp.Or(w.Batch, 1), cmp.Or(w.MicroBatches, 1)
	if w.Mode == costmodel.Load {
		w.Seq, w.TargetSeq = 0, 0
	}
	resolveStrategy(&w)
	runtime, _ := engine.Of(&w) // one that is not built is refused below
	if w.Precision == "" {
		w.Precision, w.StoredTypes = runtime.Precision(costmodel.PrecisionOf(mainType(g)))
	}
	if w.LoRARank != 0 && w.LoRAPrecision == "" {
		w.LoRAPrecision, _ = runtime.Adapters(&w) // what it has, it takes
	}
	if _, err := check(&w); err != nil {
		return w, err
	}
	if err := checkStored(g, &w); err != nil {
		return w, err
	}
	if err := checkPositions(g, &w); err != nil {
		return w, err
	}
	if err := checkFrozen(g, &w, runtime); err != nil {
		return w, err
	}
	return w, checkFlash(g, &w)
}

// check refuses a workload that contradicts itself, of any model; else it is
// the engine that runs it.
func check(w *costmodel.Workload) (engine.Engine, error) {
	if err := checkNumbers(w); err != nil {
		return nil, err
	}
	if w.NewTokens > 0 && w.Mode != costmodel.Infer {
		return nil, refuse("new_tokens", w.NewTokens, "only %v generates tokens", costmodel.Set("mode", costmodel.Infer))
	}
	return checkStrategy(w)
}

func checkNumbers(w *costmodel.Workload) error {
	for _, number := range []struct {
		field string
		value int64
	}{{"batch", w.Batch}, {"micro_batches", w.MicroBatches}, {"seq", w.Seq}, {"target_seq", w.TargetSeq}, {"new_tokens", w.NewTokens}, {"images", w.Images}} {
		if number.value < 0 || number.value > maxTokens {
			return refuse(number.field, number.value, "%d is not between 0 and 2^32", number.value)
		}
	}
	switch {
	case w.Batch == 0 || w.MicroBatches == 0:
		return refuse("batch", w.Batch, "a batch of %d in %d micro-batches is no work", w.Batch, w.MicroBatches)
	case w.Batch%w.MicroBatches != 0:
		return refuse("micro_batches", w.MicroBatches, "%d does not divide the batch of %d (%s)", w.MicroBatches, w.Batch, partsOf(w))
	case w.Seq > 0 && w.MicroBatch() > maxTokens/max(w.Seq, w.TargetSeq):
		return refuse("batch", w.Batch, "%d sequences of %d tokens are more than 2^32 tokens", w.Batch, max(w.Seq, w.TargetSeq))
	}
	return nil
}

// partsOf names numbers of micro-batches that divide the batch, of those that
// the workload's schedule takes.
func partsOf(w *costmodel.Workload) costmodel.Message {
	if !w.Strategy.Traits().Staged || w.Mode != costmodel.Train {
		return costmodel.Messagef("%s", costmodel.Nearest(w.MicroBatches, costmodel.Divisors(w.Batch), func(int64) bool { return true }))
	}
	s := costmodel.Schedule{Kind: w.Schedule, Stages: max(1, w.World), Chunks: max(1, w.VirtualStages), MicroBatches: w.MicroBatches}
	return s.Parts(w.Batch)
}

// mainType is the type the config names, else that of most parameter bytes.
func mainType(g *modelgraph.Graph) modelgraph.DType {
	if g.DType.Float() {
		return g.DType
	}
	size := make(map[modelgraph.DType]int64)
	best := modelgraph.BF16
	for i := range g.Layers {
		for j := range g.Layers[i].Params {
			tensor := &g.Layers[i].Params[j]
			if tensor.DType.Float() {
				size[tensor.DType] += tensor.Bytes()
				if size[tensor.DType] > size[best] {
					best = tensor.DType
				}
			}
		}
	}
	return best
}
