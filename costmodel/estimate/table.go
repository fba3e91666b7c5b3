package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Table is the cost of every unit of graph under a workload, which [Resolve] has
// completed and checked against the model. Faults are [*costmodel.FieldError].
func Table(graph *modelgraph.Graph, workload costmodel.Workload) (*costmodel.Table, error) {
	runtime, err := check(&workload)
	if err != nil {
		return nil, err
	}
	if err := checkImages(graph, &workload); err != nil {
		return nil, err
	}
	if err := checkStreams(graph, &workload); err != nil {
		return nil, err
	}
	loaded, err := asLoaded(graph, &workload)
	if err != nil {
		return nil, err
	}
	table := &costmodel.Table{Workload: workload, SampleTokens: sampleTokens(graph)}
	if table.SampleTokens > 0 && hasTarget(graph) {
		table.SampleTokens = workload.TargetSeq
	}
	run := workload
	if run.Runtime == value.Torchtitan && run.Preset == "" {
		run.Preset, run.ShardDegree = "torchtitan:eager", max(1, run.ShardDegree) // its modules and groups
	}
	if asFP32(&run) {
		table.Warnings = append(table.Warnings, costmodel.Messagef("what is not quantised is fp32, as PEFT's prepare_model_for_kbit_training makes it, and attention runs in fp32 with it; under autocast (Trainer's bf16=True) plan with %v", costmodel.Set("precision", costmodel.BF16Mixed)))
	}
	warnStored(table, graph, loaded)
	err = fill(table, loaded, &run, runtime, runtime.Rules(&run))
	if err != nil && workload.DP == costmodel.AutoDegree { // the least share of open replicas
		run.Batch = run.MicroBatches
		err = fill(table, loaded, &run, runtime, runtime.Rules(&run))
	}
	if err != nil {
		return table, err
	}
	countLoading(table, graph)
	if run.Compile {
		if err := compiled(table, loaded, &run, runtime); err != nil {
			return table, err
		}
	}
	return table, usual(graph, table)
}

// fill computes a table of a graph as it is loaded and a workload as it runs.
func fill(table *costmodel.Table, graph *modelgraph.Graph, run *costmodel.Workload, runtime engine.Engine, rules layers.Rules) error {
	model, err := layers.New(graph, *run, rules)
	if err != nil {
		return err
	}
	if err := checkKnown(table, model); err != nil {
		return err
	}
	var said []costmodel.Message
	table.Units, said = layers.Units(model)
	table.Warnings = append(table.Warnings, said...)
	table.Additive = run.Mode == costmodel.Load
	if !table.Additive {
		table.Workspaces = 1
		table.OutputsDropped = run.LossOnly
		runtime.Finish(model, table)
	}
	if model.Train {
		table.Workspaces = 2 // the autograd thread has its own cuBLAS handle
		if trainer.Of(run.Preset).Path.OneThread {
			table.Workspaces = 1
		}
	}
	engine.Replay(model, table)
	if err := runtime.Regions(model, table); err != nil {
		return err
	}
	if model.Train {
		if err := moments(table, model); err != nil {
			return err
		}
	}
	table.Comm, table.BodySlack, table.HeadSlack, table.Followed = catalogue.Overhead(&table.Workload)
	warnings(table, model)
	return nil
}

// asFP32 is PEFT's prepare_model_for_kbit_training (peft/utils/other.py) for adapters on a
// quantised base: unquantised weights and the residual stream become fp32. It reports whether that
// differs from the requested precision.
func asFP32(run *costmodel.Workload) bool {
	if run.Mode != costmodel.Train || run.Quantize == "" {
		return false
	}
	if trainer.Of(run.Preset).Path.QuantizedAsLoaded {
		return false
	}
	run.StoredTypes = false
	if ops.MixedPrecision(run.Precision) || run.Strategy.Traits().ByBlock { // under FSDP all has the storage's type
		return false
	}
	run.Precision = costmodel.FP32True
	return true
}

// checkKnown refuses to train a model without any known operation or cost, such as a checkpoint
// read by its tensor names: most of a training peak would be missing. It warns about a forward,
// which is mostly weights, and about partly known models.
func checkKnown(table *costmodel.Table, model *layers.Model) error {
	if model.Workload.Mode == costmodel.Load {
		return nil
	}
	known, unknown, first := countKnown(model)
	program := model.Workload.Runtime == value.JAX // its train state is exact anyway
	switch {
	case unknown == 0 || program && engine.Program(model.Graph):
		return nil
	case model.Train && known == 0 && !program:
		return refuse("mode", costmodel.Train, "no operation and no declared cost is known for any of the %d layers with parameters (the first is %q), so activations, logits and loss of a training step cannot be counted: %v plans the weights, %s",
			unknown, first, costmodel.Set("mode", costmodel.Load), exported)
	}
	if planned(model) && !program { // it refuses unsupported layers, and counts all others
		return nil
	}
	more := ""
	if unknown > 1 {
		more = fmt.Sprintf(" and %d more", unknown-1)
	}
	table.AtLeast = true
	table.Warnings = append(table.Warnings, costmodel.Messagef("no operation or cost is known for layer %q%s: activations of these are not counted, so peaks are lower bounds", first, more))
	return nil
}

// countKnown counts the layers with parameters, and names the first unknown one.
func countKnown(model *layers.Model) (known, unknown int, first string) {
	for i := range model.Layers {
		switch layer := &model.Layers[i]; {
		case len(layer.Params) == 0 || bare(layer.Layer):
		case layer.Cost.Known:
			known++
		default:
			unknown++
			if unknown == 1 {
				first = layer.Name
			}
		}
	}
	return known, unknown, first
}

// Shards are each rank's shards of every parameter under a resolved workload; nil without sharding.
func Shards(graph *modelgraph.Graph, workload *costmodel.Workload) *costmodel.Shards {
	return shard.Of(graph, workload)
}

// bare reports a parameter without a module of its own, as BERT's cls.predictions.bias, which is
// the decoder's bias under another name.
func bare(layer *modelgraph.Layer) bool {
	return len(layer.Params) == 1 && layer.Params[0].Name == "" && len(layer.Params[0].Shape) <= 1
}
