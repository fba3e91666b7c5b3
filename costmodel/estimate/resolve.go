package estimate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// defaultSeq is the sequence length if none is given and the model takes it.
const defaultSeq = 2048

// maxTokens bounds a workload so that no product of sizes overflows.
const maxTokens = 1 << 32

// Resolve completes the workload for this model: inference, or in training AdamW without recomputation;
// lengths, precision, and the defaults of strategy and engine. Errors are [*costmodel.FieldError].
func Resolve(graph *modelgraph.Graph, workload costmodel.Workload) (costmodel.Workload, error) {
	workload.Mode = cmp.Or(workload.Mode, costmodel.Infer)
	if err := resolveDeepSpeed(graph, &workload); err != nil {
		return workload, err
	}
	if workload.Mode == costmodel.Train {
		workload.Optimizer = cmp.Or(workload.Optimizer, costmodel.AdamW)
		workload.Recompute = cmp.Or(workload.Recompute, costmodel.RecomputeNone)
	}
	workload.Batch, workload.MicroBatches = cmp.Or(workload.Batch, 1), cmp.Or(workload.MicroBatches, 1)
	if workload.Quantize == "off" { // the default, written out
		workload.Quantize = ""
	}
	if workload.Float8 == "off" {
		workload.Float8 = ""
	}
	workload.Dequantized = workload.Dequantized || plainBase(graph, &workload)
	resolveLengths(graph, &workload)
	resolveStrategy(&workload)
	resolvePreset(&workload)
	if workload.Precision == "" && upcasts8(&workload) {
		workload.Precision = costmodel.BF16Mixed
	}
	runtime, _ := engine.Of(&workload) // one that is not built is refused below
	if workload.Precision == "" {
		workload.Precision, workload.StoredTypes = runtime.Precision(mainPrecision(graph))
	}
	if workload.LoRARank != 0 && workload.LoRAPrecision == "" {
		workload.LoRAPrecision, _ = runtime.Adapters(&workload) // the engine's own type
	}
	loaded, err := asLoaded(graph, &workload)
	if err != nil {
		return workload, err
	}
	resolveTargets(loaded, &workload)
	for _, fault := range []func() error{
		func() error { return checkStopped(graph, &workload) },
		func() error { return checkText(graph, &workload) }, // no other setting helps
		func() error { _, err := check(&workload); return err },
		func() error { return checkStored(graph, &workload) },
		func() error { return checkSpread(graph, &workload) },
		func() error { return resolveBatches(graph, &workload) },
		func() error { return checkPositions(graph, &workload) },
		func() error { return checkFrozen(loaded, &workload, runtime) },
		func() error { return checkDropout(&workload) },
		func() error { return checkFlash(graph, &workload) },
		func() error { return checkKernels(graph, &workload) },
		func() error { return checkProgram(graph, &workload) },
		func() error { return checkDecoder(graph, &workload) },
		func() error { return checkBuilt(graph, &workload) },
		func() error { return checkFloat8(graph, &workload) },
		func() error { return checkTorchAO(&workload) },
		func() error { return checkRepeated(graph, &workload) },
		func() error { return checkComponent(graph, &workload) },
		func() error { return checkInference(graph, &workload) },
		func() error { return checkGenerated(graph, &workload) },
	} {
		if err := fault(); err != nil {
			return workload, err
		}
	}
	return workload, nil
}

// checkStopped refuses steps of a module if devmap.export did not see its whole forward (python
// exporter/seen.py: STOPPED): later layers have no operations.
func checkStopped(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	for _, said := range graph.Warnings {
		if workload.Mode != costmodel.Load && strings.HasPrefix(said, "the forward stopped before its end") {
			return refuse("mode", workload.Mode, "%s; %v plans the weights alone", said, costmodel.Set("mode", costmodel.Load))
		}
	}
	return nil
}

// resolveLengths fills in the lengths of sequences.
func resolveLengths(graph *modelgraph.Graph, workload *costmodel.Workload) {
	if each := workload.Packing; workload.Seq == 0 && (each == "" || each == trainer.PaddingFree) {
		workload.Seq = workload.Lengths.Max // no row is longer than the longest sample
	}
	if workload.Seq == 0 {
		workload.Seq = defaultSeq
		if graph.MaxSeq > 0 {
			workload.Seq = min(workload.Seq, graph.MaxSeq)
		}
		workload.Seq = positionsBefore(graph, workload.Seq, workload.NewTokens)
	}
	if workload.TargetSeq == 0 {
		workload.TargetSeq = workload.Seq
	}
	if workload.Images == 0 && workload.Mode != costmodel.Load && readsImagesAlone(graph) {
		workload.Images = 1
	}
	if workload.Mode == costmodel.Load {
		workload.Seq, workload.TargetSeq = 0, 0
	}
}

// checkValues refuses values that are not known, which would count as another.
func checkValues(workload *costmodel.Workload) error {
	for _, field := range costmodel.Fields() {
		if value := field.Text(workload); value != "" && !field.Known(workload) {
			_, fault := field.Knows(value)
			return refuse(field.Name, value, "%s", cmp.Or(fault, fmt.Sprintf("%q is unknown (known: %s)", value, strings.Join(slices.Concat(field.Values, field.Forms), ", "))))
		}
	}
	return nil
}

// checkServing refuses an engine that serves, which planner/serve plans.
func checkServing(workload *costmodel.Workload) error {
	switch {
	case costmodel.Serves(workload.Runtime):
		return refuse("runtime", workload.Runtime, "%s serves: give it a model of its own form, without --mode", workload.Runtime)
	case workload.Mode == costmodel.Serve:
		return refuse("mode", workload.Mode, "an engine serves: %v, with devmap plan", costmodel.Set("runtime", costmodel.LlamaCPP))
	}
	return nil
}

// check refuses a workload that contradicts itself, of any model; else it is the engine that runs it.
func check(workload *costmodel.Workload) (engine.Engine, error) {
	if err := cmp.Or(checkServing(workload), checkNumbers(workload)); err != nil {
		return nil, err
	}
	generates := workload.Mode == costmodel.Infer || workload.Mode == costmodel.Train && trainer.Of(workload.Preset).Path.Generates
	if workload.NewTokens > 0 && !generates {
		return nil, refuse("new_tokens", workload.NewTokens, "only %v generates tokens", costmodel.Set("mode", costmodel.Infer))
	}
	runtime, err := checkStrategy(workload)
	if err != nil {
		return nil, err
	}
	if err := checkMoments(workload); err != nil {
		return nil, err
	}
	return runtime, cmp.Or(checkLiger(workload), checkValues(workload))
}

func checkNumbers(workload *costmodel.Workload) error {
	for _, number := range []struct {
		field string
		value int64
	}{{"batch", workload.Batch}, {"micro_batches", workload.MicroBatches}, {"seq", workload.Seq}, {"target_seq", workload.TargetSeq}, {"new_tokens", workload.NewTokens}, {"images", workload.Images}, {"eval_batch", workload.EvalBatch}, {"eval_samples", workload.EvalSamples}} {
		if number.value < 0 || number.value > maxTokens {
			return refuse(number.field, number.value, "%d is not between 0 and 2^32", number.value)
		}
	}
	switch {
	case workload.Batch == 0 || workload.MicroBatches == 0:
		return refuse("batch", workload.Batch, "a batch of %d in %d micro-batches is no work", workload.Batch, workload.MicroBatches)
	case workload.Batch%workload.MicroBatches != 0:
		return refuse("micro_batches", workload.MicroBatches, "%d does not divide the batch of %d (%s)", workload.MicroBatches, workload.Batch, partsOf(workload))
	case workload.Seq > 0 && layers.MicroBatch(workload) > maxTokens/max(workload.Seq, workload.TargetSeq):
		field, value := layers.Longest(workload)
		return refuse(field, value, "%d sequences of %d tokens are more than 2^32 tokens", workload.Batch, max(workload.Seq, workload.TargetSeq))
	}
	return nil
}

// partsOf suggests numbers of micro-batches that divide the batch and suit the schedule.
func partsOf(workload *costmodel.Workload) costmodel.Message {
	if !workload.Strategy.Traits().Staged || workload.Mode != costmodel.Train {
		return costmodel.Messagef("%s", value.NearestDivisors(workload.MicroBatches, workload.Batch, nil))
	}
	stages := workload.World / (workload.DP.Count() * workload.TP.Count() * workload.CP.Count())
	return costmodel.NewSchedule(workload, max(1, stages), max(1, workload.VirtualStages)).Parts(workload.Batch)
}

// mainPrecision is the true precision of the model's weights.
func mainPrecision(graph *modelgraph.Graph) costmodel.Precision {
	switch mainType(graph) {
	case modelgraph.F32:
		return costmodel.FP32True
	case modelgraph.F16:
		return costmodel.FP16True
	default:
		return costmodel.BF16True
	}
}

// mainType is the config's type, else the type of most parameter bytes.
func mainType(graph *modelgraph.Graph) modelgraph.DType {
	if graph.DType.Float() {
		return graph.DType
	}
	size := make(map[modelgraph.DType]int64)
	best := modelgraph.BF16
	if graph.Taken.Precision == string(costmodel.FP32True) { // a module whose tensors are complex, or buffers
		best = modelgraph.F32
	}
	for i := range graph.Layers {
		for j := range graph.Layers[i].Params {
			tensor := &graph.Layers[i].Params[j]
			if tensor.DType.Float() {
				size[tensor.DType] += tensor.Bytes
				if size[tensor.DType] > size[best] {
					best = tensor.DType
				}
			}
		}
	}
	return best
}
