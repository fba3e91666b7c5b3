package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// fsdp is PyTorch's FSDP2, on one group of GPUs or, as HSDP, on several that
// all-reduce: fully_shard on every block and on the model, or as the preset's
// [trainer.Path] does it. Examples keep the loss alone.
type fsdp struct{ base }

// Adapters are given in the base's type: FSDP2's groups have one type of
// trained parameters (torch/distributed/fsdp/_fully_shard/
// _fsdp_param_group.py, _init_mp_dtypes). A preset may have PEFT's fp32.
func (fsdp) Adapters(workload *costmodel.Workload) (string, error) {
	if !trainer.Of(workload.Preset).Path.AdaptersFP32 {
		return adaptersAs(workload.Precision), nil
	}
	if workload.LoRAPrecision == value.AdaptersBF16 && ops.MixedPrecision(workload.Precision) {
		return value.AdaptersFP32, costmodel.Refuse(costmodel.Set("lora_precision", workload.LoRAPrecision),
			"Accelerate's FSDP2 makes trained parameters fp32 under %v: use %v", costmodel.Set("precision", workload.Precision), costmodel.Set("lora_precision", value.AdaptersFP32))
	}
	return value.AdaptersFP32, nil
}

// Refuse names what fully_shard does not take or what is not modelled.
func (fsdp) Refuse(workload *costmodel.Workload) error {
	if err := checkDegree(workload); err != nil {
		return err
	}
	if workload.Quantize != "" {
		return refuseQuantised(workload)
	}
	return nil
}

// refuseQuantised says what is true of quantised bases under FSDP: of nf4
// bitsandbytes documents it (docs/source/fsdp_qlora.md: bnb_4bit_quant_storage
// as wide as what is not quantised), and devmap does not count it; LLM.int8()'s
// statistics lie outside the weights, and no storage type makes these cut.
func refuseQuantised(workload *costmodel.Workload) error {
	works := costmodel.Set("strategy", costmodel.DDP)
	if workload.Quantize == value.NF4 {
		return costmodel.Refuse(costmodel.Set("quantize", value.NF4),
			"FSDP shards nf4 weights only with bnb_4bit_quant_storage, which devmap does not support; use %v or device-map", works)
	}
	return costmodel.Refuse(costmodel.Set("quantize", workload.Quantize),
		"FSDP cuts parameters, and bitsandbytes has no form of %s weights that it can cut, as it has of nf4: use %v or device-map", workload.Quantize, works)
}

func (fsdp) Rules(workload *costmodel.Workload) layers.Rules {
	path := &trainer.Of(workload.Preset).Path
	return layers.Rules{
		Compute: gathered(workload.Precision), Cut: true, GradsPersist: path.RetainsGradients && workload.MicroBatches > 1,
		ReduceAsComputed: path.ReduceAsComputed, FrozenAsStored: path.FrozenAsStored, Modules: ops.Modules(path.Modules),
	}
}

func (fsdp) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputsDropped = true
	path := &trainer.Of(model.Workload.Preset).Path
	for _, wrapped := range shard.Groups(model.Graph, shard.EndsOf(&model.Workload)) {
		group := groupOf(model, &wrapped)
		group.Repeats = wrapped.Alone && model.Workload.Loss == value.LossChunked && model.Train
		if len(group.Units) > 0 {
			table.Groups = append(table.Groups, group.Group)
		}
	}
	if model.Train && *path == (trainer.Path{}) {
		table.Marks = once(func() [][2]int64 { return shardMarks(model, table.Groups) })
	}
	table.LastGradients = model.Train && path.ZeroesGradients
	if model.Train && path.StateDict {
		prepared(model, table)
	}
	switch {
	case !model.Train || model.Workload.MicroBatches < 2:
	case path.RetainsGradients:
		warn(table, "Accelerate reduces gradients in the last micro-batch only (no_sync), so whole gradients stay until then")
	default:
		warn(table, "FSDP2's defaults: gradients are reduced in every micro-batch, and their sharded sum is held")
	}
}

// prepared is the size of the whole model, which a state dict keeps on the GPU
// while FSDP2 makes the parts, if the model was built there.
func prepared(model *layers.Model, table *costmodel.Table) {
	if model.Workload.BuiltOn == value.BuiltOnCPU {
		return
	}
	for i := range model.Layers {
		table.Prepared += model.Layers[i].Whole.Bytes() + model.Layers[i].Whole.Padding()
	}
	warn(table, "FSDP2 prepares a model of %v on the GPU, if your script builds it there; if it loads on the CPU, plan with %v",
		costmodel.Bytes(table.Prepared), costmodel.Set("built_on", value.BuiltOnCPU))
}

// fsdpGroup adds up one of FSDP2's parameter groups.
type fsdpGroup struct {
	costmodel.Group
	model  *layers.Model
	degree int64
	stored int64 // gradients in the type that they are stored in
	cast   int64 // gathered bytes that are cast first
}

// groupOf is a group of the layers that run.
func groupOf(model *layers.Model, wrapped *shard.Group) fsdpGroup {
	group := fsdpGroup{
		Group: costmodel.Group{
			Name: wrapped.Name, Root: wrapped.Root,
			RemainsGathered: wrapped.Tail || wrapped.Root && !trainer.Of(model.Workload.Preset).Path.RootReshards,
		},
		model: model, degree: model.Workload.ShardDegree,
	}
	for _, unit := range wrapped.Units {
		runs := false
		for i := model.Graph.Units[unit].First; i < model.Graph.Units[unit].End; i++ {
			runs = runs || model.Layers[i].Runs
			group.gather(&model.Layers[i])
		}
		if runs {
			group.Units = append(group.Units, unit)
			_, embeds := model.Graph.Layers[model.Graph.Units[unit].First].Op.(modelgraph.Embedding)
			group.Late = group.Late || wrapped.Root || embeds // token ids need no gradient
		}
	}
	group.exchange()
	if wrapped.Tail && model.Train && model.Rules.Modules == ops.Torchtitan && model.Workload.Loss == value.LossChunked {
		group.reduceInForward(wrapped)
	}
	return group
}

// reduceInForward takes the head's matrix out of what backward reduces; a tied
// one is there again, as the embedding's.
func (group *fsdpGroup) reduceInForward(wrapped *shard.Group) {
	for _, unit := range wrapped.Units {
		for i := group.model.Graph.Units[unit].First; i < group.model.Graph.Units[unit].End; i++ {
			layer := &group.model.Layers[i]
			if _, head := layer.Op.(modelgraph.Head); !head || len(layer.Params) == 0 {
				continue
			}
			numel := shard.Share(layer.Params[0].Numel, group.degree)
			group.HeadReduce, group.HeadReduced = 4*group.degree*numel, 4*numel
			if !group.Late {
				group.Reduce -= group.HeadReduce
				group.Reduced -= group.HeadReduced
				group.LastGrad = 0
			}
		}
	}
}

// gather adds a layer's parameters to a group: whole, in the type of compute,
// and the gradients that are reduced.
func (group *fsdpGroup) gather(layer *layers.Layer) {
	compute, workload := group.model.Rules.Compute, &group.model.Workload
	trained := group.model.Train && layer.Runs
	group.adapters(layer, trained)
	trained = trained && !group.model.Frozen
	if bytes, ok := layer.Shard.DeclaredBytes(); ok {
		group.Gathered += group.degree * bytes
		group.Buffer += group.degree * bytes
		if trained {
			group.Reduce += group.degree * bytes
			group.stored += group.degree * bytes
			group.LastGrad = layer.Declared.ParamsBytes
		}
		return
	}
	for j, part := range layer.Shard.Owned() {
		if !part.DType.Float() {
			group.add(group.degree * part.Bytes)
			continue
		}
		each := ops.WeightBytes(compute)
		if compute == workload.Precision && workload.StoredTypes {
			each = part.DType.Bits() / 8
		}
		size := group.degree * part.Numel * each
		group.add(size)
		if size != group.degree*layer.Shard.Stored(j) {
			group.cast += size
		}
		if trained { // reduced in fp32 under mixed precision (reduce_dtype), else in the gradients' type
			reduced := ops.WeightBytes(workload.Precision)
			group.stored += group.degree * part.Numel * reduced
			if group.model.Rules.ReduceAsComputed {
				reduced = ops.WeightBytes(compute)
			}
			group.Reduce += group.degree * part.Numel * reduced
			group.LastGrad = layer.Params[j].Numel * ops.WeightBytes(compute)
		}
	}
}

// adapters adds a layer's adapters to a group: FSDP2 gathers them with the
// base, in the type of compute, and reduces their gradients alone.
func (group *fsdpGroup) adapters(layer *layers.Layer, trained bool) {
	for _, matrix := range layer.Shard.Matrices() {
		numel := group.degree * matrix.Numel()
		size := numel * group.model.AdapterCompute()
		group.add(size)
		if group.model.AdapterCompute() != group.model.AdapterStored() {
			group.cast += size
		}
		if trained {
			group.Reduce += numel * group.model.AdapterReduce()
			group.stored += numel * group.model.AdapterStored()
			group.LastGrad = size
		}
	}
}

// add gathers a tensor.
func (group *fsdpGroup) add(size int64) {
	group.Gathered += size + allocator.Rounding(size)
	group.Buffer += size
}

// exchange sizes a group's buffers. Buffer and Reduced come from pools of their
// own streams, if nothing else is cached, so that they pay the allocator's
// rounding; the gathered parameters are the first to be allocated and find
// their own blocks again. A group of one GPU copies instead of gathering
// (_fsdp_param_group.py unshard, foreach_reduce: world_size 1).
func (group *fsdpGroup) exchange() {
	group.Reduced = group.stored / group.degree
	group.Reduced += allocator.Rounding(group.Reduced)
	if group.stored != group.Reduce {
		group.Staged = group.Reduce / group.degree
	}
	if group.degree == 1 {
		group.Buffer, group.LastGrad = 0, 0
		return
	}
	group.CopyIn = group.cast / group.degree // _get_param_all_gather_inputs: one flat cast copy
	group.Buffer += allocator.Rounding(group.Buffer)
}
