package shard

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// least is the size in bytes from which OpenPI cuts an array.
const least = 4 << 20

// Axis is the axis along which OpenPI shards an array over degree devices, or -1 if every device
// holds it whole. It is the longest axis that they divide, the last of equals, as in argsort. Only
// arrays of two axes or more and 4 MiB or more are sharded (openpi at 15a9616,
// training/sharding.py, fsdp_sharding).
func Axis(array *modelgraph.Tensor, degree int64) int {
	if degree < 2 || len(array.Shape) < 2 || array.Bytes < least {
		return -1
	}
	longest := -1
	for axis, side := range array.Shape {
		if side%degree == 0 && (longest < 0 || side >= array.Shape[longest]) {
			longest = axis
		}
	}
	return longest
}

// Numel are the elements of an array that each of degree devices holds by [Axis]: no array is padded.
func Numel(array *modelgraph.Tensor, degree int64) int64 {
	if Axis(array, degree) < 0 {
		return array.Numel
	}
	return array.Numel / degree
}

// arrays are the shards of a tree of arrays: a unit's are used together. An array that is not cut
// is whole on every rank, so that its ranks hold more than one of it.
func arrays(graph *modelgraph.Graph, degree int64) *costmodel.Shards {
	shards := &costmodel.Shards{Degree: degree}
	for index := range graph.Units {
		if !owns(graph, []int{index}) {
			continue
		}
		unit := added(&shards.Units)
		unit.Name = graph.Units[index].Name
		for i := graph.Units[index].First; i < graph.Units[index].End; i++ {
			layer := &graph.Layers[i]
			for _, array := range layer.Owned() {
				param := added(&shards.Params)
				param.Name, param.Numel = modelgraph.FullName(layer.Name, array.Name), array.Numel
				param.RankNumel = slices.Repeat([]int64{Numel(array, degree)}, int(degree))
				param.PaddedNumel = degree * param.RankNumel[0]
				unit.Params = append(unit.Params, param.Name)
				unit.Numel, unit.PaddedNumel = unit.Numel+param.Numel, unit.PaddedNumel+param.PaddedNumel
			}
		}
	}
	return shards
}
