package shard

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Rule is how one parameter is cut.
type Rule int

// The rules.
const (
	// Rows cuts the first dimension, as torch.chunk does: ceil(rows / degree) to each rank until
	// none are left (torch 2.11, _fsdp_param.py _init_sharded_param: Shard(0), _chunk_with_empty).
	Rows Rule = iota
	// Flat cuts the flattened parameter: ceil(numel / degree) elements to each rank (DeepSpeed,
	// partition_parameters.py _aligned_size, _partition_param).
	Flat
)

// RuleOf is the rule of a workload's strategy, or of FSDP1, which cuts a group's parameters as one.
func RuleOf(workload *costmodel.Workload) Rule {
	if traits := workload.Strategy.Traits(); (traits.ByBlock || traits.Staged) && !trainer.Of(workload.Preset).Path.Flat {
		return Rows
	}
	return Flat
}

// Local is the shape of the part of a parameter that each of degree ranks
// stores, padding included. A scalar counts as one row.
func (rule Rule) Local(shape []int64, degree int64) []int64 {
	if rule == Flat || len(shape) == 0 {
		return []int64{Share(product(shape), degree)}
	}
	local := slices.Clone(shape)
	local[0] = Share(shape[0], degree)
	return local
}

// Ranks is the number of elements on each of degree ranks, without padding.
func (rule Rule) Ranks(shape []int64, degree int64) []int64 {
	numel := product(shape)
	part := product(rule.Local(shape, degree))
	out := make([]int64, degree)
	for i := range out {
		out[i] = min(part, numel)
		numel -= out[i]
	}
	return out
}

// Tensor is the part of a tensor that each of degree ranks stores, padding included.
func (rule Rule) Tensor(tensor *modelgraph.Tensor, degree int64) modelgraph.Tensor {
	local, err := modelgraph.NewTensor(tensor.Name, tensor.DType, rule.Local(tensor.Shape, degree)...)
	if err != nil { // it is no larger than the tensor, which has a size
		panic(err)
	}
	local.Owner = tensor.Owner
	return local
}

func product(shape []int64) int64 {
	elements := int64(1)
	for _, side := range shape {
		elements *= side
	}
	return elements
}

// Share is one of so many equal parts, rounded up.
func Share(size, parts int64) int64 { return (size + parts - 1) / parts }
