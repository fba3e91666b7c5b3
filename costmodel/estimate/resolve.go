package estimate

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// DefaultSeq is the sequence length where none is given and the model takes
// it.
const DefaultSeq = 2048

// maxTokens bounds a workload so that no product of sizes overflows.
const maxTokens = 1 << 32

// Resolve fills in what the workload leaves open for this model: lengths and
// precision. Faults are [*costmodel.FieldError].
func Resolve(g *modelgraph.Graph, w costmodel.Workload) (costmodel.Workload, error) {
	if w.Seq == 0 {
		w.Seq = DefaultSeq
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
	resolvePrecision(g, &w)
	if err := check(&w); err != nil {
		return w, err
	}
	if err := checkStored(g, &w); err != nil {
		return w, err
	}
	if err := checkPositions(g, &w); err != nil {
		return w, err
	}
	if err := checkFrozen(g, &w); err != nil {
		return w, err
	}
	if err := checkFlash(g, &w); err != nil {
		return w, err
	}
	return w, nil
}

func check(w *costmodel.Workload) error {
	for _, v := range []struct {
		field string
		n     int64
	}{{"batch", w.Batch}, {"micro_batches", w.MicroBatches}, {"seq", w.Seq}, {"target_seq", w.TargetSeq}, {"new_tokens", w.NewTokens}, {"images", w.Images}} {
		if v.n < 0 || v.n > maxTokens {
			return &costmodel.FieldError{Field: v.field, Msg: costmodel.Messagef("%d is not between 0 and 2^32", v.n)}
		}
	}
	if w.Batch == 0 || w.MicroBatches == 0 {
		return &costmodel.FieldError{Field: "batch", Msg: costmodel.Messagef("a batch of %d in %d micro-batches is no work", w.Batch, w.MicroBatches)}
	}
	if w.Batch%w.MicroBatches != 0 {
		return &costmodel.FieldError{Field: "micro_batches", Msg: costmodel.Messagef("%d does not divide the batch of %d (%s)", w.MicroBatches, w.Batch, partsOf(w))}
	}
	if w.Seq > 0 && w.MicroBatch() > maxTokens/max(w.Seq, w.TargetSeq) {
		return &costmodel.FieldError{Field: "batch", Msg: costmodel.Messagef("%d sequences of %d tokens are more than 2^32 tokens", w.Batch, max(w.Seq, w.TargetSeq))}
	}
	if w.NewTokens > 0 && w.Mode != costmodel.Infer {
		return &costmodel.FieldError{Field: "new_tokens", Msg: costmodel.Messagef("only %v generates tokens", costmodel.Set("mode", "infer"))}
	}
	return checkStrategy(w)
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
			t := &g.Layers[i].Params[j]
			if t.DType.Float() {
				size[t.DType] += t.Bytes()
				if size[t.DType] > size[best] {
					best = t.DType
				}
			}
		}
	}
	return best
}
