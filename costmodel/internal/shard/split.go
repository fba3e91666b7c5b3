package shard

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Rule is how one parameter is cut.
type Rule int

// The rules.
const (
	// Rows cuts the first dimension, as torch.chunk does: ceil(rows / degree)
	// to each rank until none are left (torch 2.11, _fsdp_param.py
	// _init_sharded_param: Shard(0), _chunk_with_empty).
	Rows Rule = iota
	// Flat cuts the flattened parameter: ceil(numel / degree) elements to
	// each rank (DeepSpeed, partition_parameters.py _aligned_size,
	// _partition_param).
	Flat
)

// RuleOf is a strategy's rule.
func RuleOf(s costmodel.Strategy) Rule {
	if s.Traits().ByBlock {
		return Rows
	}
	return Flat
}

// Local is the shape of the part of a parameter that each of degree ranks
// stores, padding included. A scalar counts as one row.
func (r Rule) Local(shape []int64, degree int64) []int64 {
	if r == Flat || len(shape) == 0 {
		return []int64{ceil(product(shape), degree)}
	}
	local := slices.Clone(shape)
	local[0] = ceil(shape[0], degree)
	return local
}

// Ranks is the number of elements that each of degree ranks holds, without
// padding; they add up to the parameter's.
func (r Rule) Ranks(shape []int64, degree int64) []int64 {
	numel := product(shape)
	part := product(r.Local(shape, degree))
	out := make([]int64, degree)
	for i := range out {
		out[i] = min(part, numel)
		numel -= out[i]
	}
	return out
}

// Tensor is the part of t that each of degree ranks stores, padding included.
func (r Rule) Tensor(t *modelgraph.Tensor, degree int64) modelgraph.Tensor {
	local, err := modelgraph.NewTensor(t.Name, t.DType, r.Local(t.Shape, degree)...)
	if err != nil { // it is no larger than t, which has a size
		panic(err)
	}
	local.Owner = t.Owner
	return local
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
