package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// fsdp is PyTorch's FSDP2, on one group of GPUs or, as HSDP, on several that
// all-reduce: fully_shard on every block and on the model. Examples keep the
// loss alone.
type fsdp struct{ base }

// Adapters are given in the base's type: FSDP2's groups have one type of
// trained parameters (torch/distributed/fsdp/_fully_shard/
// _fsdp_param_group.py, _init_mp_dtypes).
func (fsdp) Adapters(workload *costmodel.Workload) (string, error) {
	return adaptersAs(workload.Precision), nil
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
	return layers.Rules{Compute: gathered(workload.Precision), Cut: true}
}

func (fsdp) Finish(model *layers.Model, table *costmodel.Table) {
	table.OutputsDropped = true
	for _, wrapped := range shard.Groups(model.Graph) {
		group := groupOf(model, &wrapped)
		if len(group.Units) > 0 {
			table.Groups = append(table.Groups, group.Group)
		}
	}
	if model.Train {
		table.Marks = once(func() [][2]int64 { return shardMarks(model, table.Groups) })
	}
	if model.Train && model.Workload.MicroBatches > 1 {
		warn(table, "FSDP2's defaults: gradients are reduced in every micro-batch, and their sharded sum is held")
	}
}

// fsdpGroup adds up one of FSDP2's parameter groups.
type fsdpGroup struct {
	costmodel.Group
	model  *layers.Model
	degree int64
}

// groupOf is a group of the layers that run.
func groupOf(model *layers.Model, wrapped *shard.Group) fsdpGroup {
	group := fsdpGroup{
		Group: costmodel.Group{Name: wrapped.Name, Root: wrapped.Root, RemainsGathered: wrapped.Root},
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
		}
	}
	group.exchange()
	return group
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
		group.add(group.degree * part.Numel * each)
		if trained { // reduced in fp32 under mixed precision (reduce_dtype), else in the gradients' type
			group.Reduce += group.degree * part.Numel * ops.WeightBytes(workload.Precision)
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
		if trained {
			group.Reduce += numel * group.model.AdapterReduce()
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
	group.Reduced = group.Reduce / group.degree
	group.Reduced += allocator.Rounding(group.Reduced)
	if group.degree == 1 {
		group.Buffer, group.LastGrad = 0, 0
		return
	}
	if group.model.Rules.Compute != group.model.Workload.Precision { // _get_param_all_gather_inputs: one flat cast copy
		group.CopyIn = group.Buffer / group.degree
	}
	group.Buffer += allocator.Rounding(group.Buffer)
}
