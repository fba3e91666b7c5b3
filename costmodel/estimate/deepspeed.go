package estimate

import (
	"cmp"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
	"github.com/devmap-dev/devmap/modelgraph"
)

// configured begins a message about a setting of the file that contradicts a flag.
const configured = "the DeepSpeed configuration says "

// resolveDeepSpeed lays a configuration under a workload: it fills in what that
// leaves open. A contradiction is a [*costmodel.FieldError].
func resolveDeepSpeed(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.HostStates {
		if err := offloadStates(workload); err != nil {
			return err
		}
	}
	if workload.DeepSpeed == nil {
		return nil
	}
	set := *workload.DeepSpeed
	workload.DeepSpeed = &set
	asked := set.Asked
	set.Asked = zero.Asked{}
	stage := costmodel.Strategy(fmt.Sprintf("zero%d", set.Stage))
	workload.Strategy = cmp.Or(workload.Strategy, stage)
	if workload.Strategy != stage {
		return refuse("strategy", workload.Strategy, "%s contradicts the file: "+configured+"zero_optimization.stage %d, which is %v", workload.Strategy, set.Stage, costmodel.Set("strategy", stage))
	}
	set.Fill(widthOf(graph))
	for _, fault := range []error{
		askedBatch(workload, &asked),
		askedPrecision(graph, workload, &asked),
		askedOptimizer(workload, &asked),
	} {
		if fault != nil {
			return fault
		}
	}
	if err := set.Fault(); err != nil {
		return refuse("ds_config", "", "zero_optimization.%v", err)
	}
	return nil
}

// offloadStates makes DeepSpeed settings of a request to offload sharded state.
func offloadStates(workload *costmodel.Workload) error {
	stage := workload.Strategy.Traits().ZeroStage
	if workload.Strategy.Traits().ByBlock && workload.Mode == costmodel.Train && workload.DeepSpeed == nil && workload.Runtime != value.JAX {
		workload.HostShards, workload.HostStates = true, false
		return nil
	}
	if workload.DeepSpeed != nil || stage == 0 || workload.Strategy.Traits().ByBlock || workload.Mode != costmodel.Train {
		return refuse("offload", "cpu", "it keeps in host memory what zero1, zero2, zero3, fsdp and hsdp shard in training, without a configuration file")
	}
	settings := zero.Defaults(int64(stage))
	settings.OffloadOptimizer, settings.OffloadParams = true, stage == 3
	workload.DeepSpeed, workload.HostStates = &settings, false
	return nil
}

// widthOf is config.hidden_size.
func widthOf(graph *modelgraph.Graph) int64 {
	for i := range graph.Layers {
		if attention, ok := graph.Layers[i].Op.(modelgraph.Attention); ok && graph.Layers[i].Stream.Kind == modelgraph.Text {
			return attention.Dim
		}
	}
	for i := range graph.Layers {
		if embedding, ok := graph.Layers[i].Op.(modelgraph.Embedding); ok {
			return embedding.Dim
		}
	}
	return 0
}

func said(number int64) bool { return number > 0 }

// resolvedBatch is the micro-batch and the number of them, 0 if nothing says.
func resolvedBatch(workload *costmodel.Workload, asked *zero.Asked, gpus int64) (micro, steps int64) {
	micro, steps = asked.MicroBatch, asked.Accumulation
	train := asked.TrainBatch
	switch {
	case said(train) && said(micro) && !said(steps):
		steps = max(1, train/micro/gpus)
	case said(train) && said(steps) && !said(micro):
		micro = train / gpus / steps
	case said(train) && !said(micro):
		micro, steps = train/gpus, 1
	case said(micro) && !said(steps):
		steps = max(1, cmp.Or(workload.MicroBatches, 1))
		if asked.Accumulation == 0 && asked.TrainBatch == 0 {
			steps = 1
		}
	}
	return micro, steps
}

// askedBatch computes the batch as DeepSpeed does, each of three numbers from the others
// (runtime/config.py, _set_batch_related_parameters, _batch_assertion).
func askedBatch(workload *costmodel.Workload, asked *zero.Asked) error {
	train, gpus := asked.TrainBatch, max(1, workload.World)
	micro, steps := resolvedBatch(workload, asked, gpus)
	if said(train) && said(workload.World) && train != micro*steps*gpus {
		return refuse("batch", cmp.Or(workload.Batch, train), configured+"train_batch_size %d, which is not train_micro_batch_size_per_gpu %d × gradient_accumulation_steps %d × %d GPUs: %d is",
			train, micro, steps, gpus, max(1, micro)*max(1, steps)*gpus)
	}
	if said(steps) {
		if workload.MicroBatches > 0 && workload.MicroBatches != steps {
			return refuse("micro_batches", workload.MicroBatches, "%d contradicts the file: "+configured+"gradient_accumulation_steps %d", workload.MicroBatches, steps)
		}
		workload.MicroBatches = steps
	}
	if !said(micro) {
		return nil
	}
	batch := micro * max(1, workload.MicroBatches)
	if workload.Batch > 0 && workload.Batch != batch {
		return refuse("batch", workload.Batch, "%d contradicts the file: "+configured+"train_micro_batch_size_per_gpu %d × gradient_accumulation_steps %d, which is %v", workload.Batch, micro, max(1, workload.MicroBatches), costmodel.Set("batch", batch))
	}
	workload.Batch = batch
	return nil
}

// askedPrecision is the precision of the bf16 and fp16 sections. Without either the module keeps
// its type, with fp32 gradients and masters (engine.py, get_data_types); zero.Init makes it fp32
// (partition_parameters.py, _set_dtype).
func askedPrecision(graph *modelgraph.Graph, workload *costmodel.Workload, asked *zero.Asked) error {
	var means costmodel.Precision
	switch asked.Section {
	case zero.SectionBF16:
		means = costmodel.BF16Mixed
	case zero.SectionTrue:
		means = costmodel.BF16True
	case zero.SectionFP16:
		means = costmodel.FP16Mixed
	case zero.SectionNone:
		means = costmodel.FP32True
		if stored := cmp.Or(workload.Precision, mainPrecision(graph)); workload.DeepSpeed.Stage < 3 && (ops.WeightBytes(stored) < 4 || ops.MixedPrecision(stored)) {
			means = costmodel.BF16Mixed
			workload.DeepSpeed.FP32Gradients, workload.DeepSpeed.FP32Reduction = true, true
			if stored == costmodel.FP16True || stored == costmodel.FP16Mixed {
				means = costmodel.FP16Mixed
			}
		}
	default:
		return nil
	}
	if workload.Precision != "" && workload.Precision != means {
		return refuse("precision", workload.Precision, "%s contradicts the file: "+configured+"%s, which is %v", workload.Precision, sections[asked.Section], costmodel.Set("precision", means))
	}
	workload.Precision = means
	return nil
}

// sections are the parts of the file.
var sections = map[string]string{
	zero.SectionBF16: "bf16.enabled", zero.SectionFP16: "fp16.enabled",
	zero.SectionTrue: "bf16.bf16_master_weights_and_grads", zero.SectionNone: "neither bf16.enabled nor fp16.enabled",
}

// optimizers maps DeepSpeed's names to the modelled optimizers.
var optimizers = map[string]string{"adam": costmodel.AdamW, "adamw": costmodel.AdamW, "sgd": costmodel.SGD, "muon": value.Muon}

func askedOptimizer(workload *costmodel.Workload, asked *zero.Asked) error {
	if asked.Optimizer == "" || workload.Mode != costmodel.Train {
		return nil
	}
	means, ok := optimizers[asked.Optimizer]
	switch {
	case !ok:
		return refuse("optimizer", cmp.Or(workload.Optimizer, asked.Optimizer), configured+"optimizer.type %q, which is not modelled (Adam, AdamW, SGD and Muon are)", asked.Optimizer)
	case workload.Optimizer != "" && workload.Optimizer != means:
		return refuse("optimizer", workload.Optimizer, "%s contradicts the file: "+configured+"optimizer.type %q, which is %v", workload.Optimizer, asked.Optimizer, costmodel.Set("optimizer", means))
	}
	workload.Optimizer = means
	return nil
}
