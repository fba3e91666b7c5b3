package engine

import (
	"math/bits"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// fsdp is PyTorch's FSDP2, on one group of GPUs or, as HSDP, on several that all-reduce.
// fully_shard applies to every block and to the model, or as in the preset's [trainer.Path].
type fsdp struct{ base }

// Adapters have the base's type: FSDP2's groups have one type of trained parameters
// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py, _init_mp_dtypes). A preset may have
// PEFT's fp32.
func (fsdp) Adapters(workload *costmodel.Workload) (string, error) {
	if quantized16(workload) { // Accelerate makes no parameter of a 4-bit model fp32
		return value.AdaptersBF16, nil
	}
	if !trainer.Of(workload.Preset).Path.AdaptersFP32 {
		return adaptersAs(workload.Precision), nil
	}
	if workload.LoRAPrecision == value.AdaptersBF16 && ops.MixedPrecision(workload.Precision) {
		return value.AdaptersFP32, costmodel.Refuse(costmodel.Set("lora_precision", workload.LoRAPrecision),
			"Accelerate's FSDP2 makes trained parameters fp32 under %v: use %v", costmodel.Set("precision", workload.Precision), costmodel.Set("lora_precision", value.AdaptersFP32))
	}
	return value.AdaptersFP32, nil
}

// Refuse names what fully_shard refuses or devmap does not model.
func (fsdp) Refuse(workload *costmodel.Workload) error {
	if err := checkDegree(workload); err != nil {
		return err
	}
	if workload.HostShards && trainer.Of(workload.Preset).Path.ZeroesGradients {
		// FSDP2 waits for the copies of gradients (_fsdp_param_group.py,
		// finalize_backward: grad_offload_event.synchronize), which no capture takes.
		return costmodel.Refuse(costmodel.Set("offload", "cpu"), "%v captures CUDA graphs, which cannot contain FSDP2's CPU offload: use %v",
			costmodel.Set("preset", workload.Preset), costmodel.Set("preset", workload.Preset+":eager"))
	}
	if workload.Quantize == "" || workload.Quantize == value.NF4 {
		return nil
	}
	// LLM.int8()'s statistics lie outside the weights, and no storage type makes these cut.
	works := costmodel.Set("strategy", costmodel.DDP)
	return costmodel.Refuse(costmodel.Set("quantize", workload.Quantize),
		"FSDP cuts parameters, and bitsandbytes has no form of %s weights that it can cut, as it has of nf4: use %v or device-map", workload.Quantize, works)
}

func (fsdp) Rules(workload *costmodel.Workload) layers.Rules {
	path := &trainer.Of(workload.Preset).Path
	return layers.Rules{
		Compute: gathered(workload.Precision), Cut: true, GradsPersist: path.RetainsGradients && workload.MicroBatches > 1,
		ReduceAsComputed: path.ReduceAsComputed, FrozenAsStored: path.FrozenAsStored && !path.FrozenFP32 || workload.Quantize != "",
		Adapters16: autocast(workload), HeadAsStored: path.HeadWhole, Modules: ops.Modules(path.Modules),
		// Before a graph capture, the step runs once on the capture's stream. The optimizer's
		// stream does not reuse that stream's blocks (torchtitan 0.3, distributed/cudagraph.py,
		// CUDAGraphWrapper.__call__).
		StatesApart: path.ZeroesGradients,
	}
}

func (fsdp) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputsDropped = true
	path := &trainer.Of(model.Workload.Preset).Path
	table.LastGradients = model.Train && path.LastGradients
	table.ZeroesGradients = model.Train && path.ZeroesGradients
	for _, wrapped := range shard.Groups(model.Graph, shard.EndsOf(&model.Workload)) {
		if group := groupOf(model, &wrapped); len(group.Units) > 0 {
			table.Groups = append(table.Groups, group.Group)
		}
	}
	if model.Workload.Quantize != "" && model.Workload.Preset != "torchtune" { // it has torchao's
		warnStorage(model, table)
	}
	if model.Workload.HostShards {
		onHost(model, table)
	} else if model.Train && *path == (trainer.Path{}) && model.Workload.Quantize == "" {
		table.Marks = once(func() [][2]int64 { return shardMarks(model, table.Groups) })
	}
	if model.Train && path.StateDict {
		prepared(model, table)
	}
	table.Reference = shardedReference(model, table.Groups)
	if model.Train && model.Workload.MicroBatches > 1 {
		warnReduction(table, path)
	}
}

// warnReduction says which micro-batches reduce gradients.
func warnReduction(table *costmodel.Table, path *trainer.Path) {
	if path.RetainsGradients {
		warn(table, "Accelerate reduces gradients in the last micro-batch only (no_sync), so whole gradients stay until then")
	} else {
		warn(table, "FSDP2's defaults: gradients are reduced in every micro-batch, and their sharded sum is held")
	}
}

// warnStorage says what bitsandbytes' default storage costs: Accelerate does not
// shard it (utils/fsdp_utils.py, fsdp2_prepare_model: ignored_params).
func warnStorage(model *layers.Model, table *costmodel.Table) {
	var more int64
	for i := range model.Layers {
		for j := range model.Layers[i].Whole.Owned() {
			more += model.Layers[i].Whole.Packed(j) - model.Layers[i].Shard.Packed(j)
		}
	}
	warn(table, "4-bit weights are sharded with bnb_4bit_quant_storage=torch.bfloat16; with its default, uint8, they stay whole on every GPU: %v more", costmodel.Bytes(more))
}

// tiedAgain is the cost of a tied head under from_pretrained(distributed_config=). fully_shard takes the
// norm and the embedding there, and ties weights later. So the root has the head's weight, which is
// gathered again and stays (transformers/distributed/fsdp.py, apply_fully_sharded_data_parallelism).
func tiedAgain(model *layers.Model, group *costmodel.Group) int64 {
	var size int64
	for _, unit := range group.Units {
		layer := &model.Layers[model.Graph.Units[unit].First]
		if _, embeds := layer.Op.(modelgraph.Embedding); embeds {
			for _, part := range layer.Shard.Owned() {
				size += model.Workload.ShardDegree * part.Numel * ops.WeightBytes(model.Rules.Compute)
			}
		}
	}
	return size
}

// broadcast is most of what preparing a model of host memory has above its shards. Each parameter of the
// state dict arrives whole, and becomes a shard. A tied one has two shards until weights are tied
// again (accelerate 1.15, utils/fsdp_utils.py, fsdp2_load_full_state_dict).
func broadcast(model *layers.Model) int64 {
	var shards, total, most int64
	for i := range model.Layers {
		part := &model.Layers[i].Shard
		shards, total = shards+part.Bytes(), total+part.Bytes()
		for j := range part.Params {
			switch {
			case model.Workload.HostShards: // the others are in host memory
				shards, total = part.Stored(j), 0
			case part.Params[j].Owner != "":
				shards += part.Stored(j)
			}
			most = max(most, shards+model.Layers[i].Whole.Stored(j))
		}
	}
	return most - total
}

// prepared is the size of a model built on the GPU: a state dict keeps it there while FSDP2 shards.
func prepared(model *layers.Model, table *costmodel.Table) {
	if value.OnHost(model.Workload.BuiltOn, model.Workload.Quantize) {
		table.Prepared = broadcast(model)
		return
	}
	for i := range model.Layers {
		whole := &model.Layers[i].Whole
		table.Prepared += whole.Bytes() + whole.Padding()
		for j := range whole.Owned() {
			if packed := whole.Packed(j); packed > 0 {
				table.Prepared -= whole.Stored(j) - packed // the parts have the same statistics
			}
		}
	}
}

// fsdpGroup adds up one of FSDP2's parameter groups.
type fsdpGroup struct {
	costmodel.Group
	model  *layers.Model
	degree int64
	stored int64 // gradients in the type that they are stored in, as if all were cut over degree
	reduce int64 // the same in the type that they are reduced in
	cast   int64 // gathered bytes that are cast first, likewise
	whole  int64 // parameters in the type that they are stored in
	casts8 int64 // what making the 8-bit copy of the largest part has in addition
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
	if wrapped.Tail {
		group.tiedTwice()
	}
	group.exchange()
	group.Repeats = wrapped.Alone && model.Workload.Loss == value.LossChunked && model.Train
	if wrapped.Tail {
		group.head(wrapped)
	}
	return group
}

// head is the use of the head's group in a program's loss.
func (group *fsdpGroup) head(wrapped *shard.Group) {
	model, path := group.model, &trainer.Of(group.model.Workload.Preset).Path
	group.Unhooked = path.HeadWhole
	if path.HeadWhole && len(wrapped.Units) == 1 && model.Frozen {
		// No hook of this group runs: PEFT's norm is the root's, and nothing calls the head itself.
		// full_tensor gathers it in its stored type, to the end of backward.
		group.Buffer, group.CopyIn, group.Gathered = 0, 0, group.whole
	}
	if model.Train && model.Rules.Modules == ops.Torchtitan && model.Workload.Loss == value.LossChunked {
		group.reduceInForward(wrapped)
	}
	if path.ReduceFP32 {
		group.Gathered += tiedAgain(model, &group.Group)
	}
}

// reduceInForward removes the head's matrix from backward's reduction; a tied one remains, as
// embedding.
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

// gather adds a layer's parameters to a group: whole, in the type of compute, and their gradients.
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
			group.reduce += group.degree * bytes
			group.stored += group.degree * bytes
			group.LastGrad = layer.Declared.ParamsBytes
		}
		return
	}
	for j, part := range layer.Shard.Owned() {
		degree := layer.Shard.Degree(j)
		if packed := layer.Shard.Packed(j); packed > 0 {
			group.add(group.degree*packed, degree)
			continue
		}
		if !part.DType.Float() {
			group.add(group.degree*part.Bytes, degree)
			continue
		}
		each := ops.WeightBytes(compute)
		if compute == workload.Precision && workload.StoredTypes {
			each = part.DType.Bits() / 8
		}
		if layer.Shard.Gathered8(j) {
			each = 1
			group.casts8 = max(group.casts8, 8*part.Numel)
		}
		group.add(degree*part.Numel*each, degree)
		group.whole += degree * layer.Shard.Stored(j)
		if part.Numel*each != layer.Shard.Stored(j) {
			group.cast += group.degree * part.Numel * each
		}
		if trained { // reduced in fp32 under mixed precision (reduce_dtype), else in the gradients' type
			reduced := ops.WeightBytes(workload.Precision)
			group.stored += group.degree * part.Numel * reduced
			if group.model.Rules.ReduceAsComputed {
				reduced = ops.WeightBytes(compute)
			} else if trainer.Of(workload.Preset).Path.ReduceFP32 {
				reduced = 4
			}
			group.Reduce += degree * part.Numel * reduced
			group.reduce += group.degree * part.Numel * reduced
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
		group.add(size, group.degree)
		if group.model.AdapterCompute() != group.model.AdapterStored() {
			group.cast += size
		}
		if trained {
			group.Reduce += numel * group.model.AdapterReduce()
			group.reduce += numel * group.model.AdapterReduce()
			group.stored += numel * group.model.AdapterStored()
			group.LastGrad = size
		}
	}
}

// add gathers a tensor over so many GPUs; one copies it.
func (group *fsdpGroup) add(size, degree int64) {
	group.Gathered += size + allocator.Rounding(size)
	if degree > 1 {
		group.Buffer += size
	}
}

// exchange sizes a group's buffers. Buffer and Reduced come from empty pools of their own streams,
// so the allocator rounds them; gathered parameters come first and reuse their blocks. A group of
// one GPU copies instead of gathering (_fsdp_param_group.py unshard, foreach_reduce: world_size 1).
func (group *fsdpGroup) exchange() {
	group.Reduced = group.stored / group.degree
	group.Reduced += allocator.Rounding(group.Reduced)
	if group.stored != group.reduce {
		group.Staged = group.reduce / group.degree
	}
	if group.degree == 1 {
		group.LastGrad = 0
		if group.model.Rules.Modules == ops.Torchtitan { // foreach_reduce divides the input by a factor, which is 1
			group.Staged = group.Reduce
		}
		return
	}
	group.CopyIn = group.cast / group.degree // _get_param_all_gather_inputs: one flat cast copy
	if group.model.Workload.HostShards {
		group.CopyIn = group.Buffer / group.degree // copies of the host's parts
	}
	group.Buffer += allocator.Rounding(group.Buffer)
	// Before the buffer, fsdp_pre_all_gather makes the copies one after another.
	group.CopyIn += max(0, group.casts8-group.Buffer)
}

// onHost moves the shards to host memory (torch 2.11, _fully_shard/_fsdp_param.py, offload_to_cpu). Each
// is copied to the GPU before it is gathered, and its reduced gradient back; the optimizer runs on the
// CPU. PyTorch rounds pinned blocks up to powers of two (CachingHostAllocator.h, HostBlock).
func onHost(model *layers.Model, table *costmodel.Table) {
	var pinned, pageable int64
	for i := range table.Units {
		unit := &table.Units[i]
		pageable += unit.OptimizerState // of plain CPU tensors
		unit.Params, unit.Padding, unit.OptimizerState, unit.StepTransient = 0, 0, 0, 0
	}
	lock := func(size int64, trained bool) { // the part, and its gradient
		block := int64(1) << bits.Len64(uint64(max(1, size)-1))
		if pinned += block; trained {
			pinned += block
		}
	}
	refers := model.Train && trainer.Of(model.Workload.Preset).Path.Reference
	for i := range model.Layers {
		part := &model.Layers[i].Shard
		for j := range part.Owned() {
			if packed := part.Packed(j); packed > 0 { // statistics are no parameters
				table.Units[part.UnitIndex].Params += part.Stored(j) - packed
				lock(packed, false)
				continue
			}
			lock(part.Stored(j), !model.Frozen)
			if refers && !model.Frozen {
				lock(part.Stored(j), false)
			}
		}
		for _, matrix := range part.Matrices() {
			lock(matrix.Numel()*model.AdapterStored(), true)
		}
	}
	table.HostBytes = (pinned + pageable) * model.Workload.World
	warn(table, "offload keeps %v of host memory a GPU, %v of it pinned (PyTorch rounds buffers up to powers of two): %v for %d GPUs", costmodel.Bytes(pinned+pageable), costmodel.Bytes(pinned), costmodel.Bytes(table.HostBytes), model.Workload.World)
	warn(table, "the step time leaves out copies to and from the host, and the optimizer on the CPU")
}
