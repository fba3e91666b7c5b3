package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// storages are numbers of storages of a size ([learned.Storages]).
type storages = []struct {
	Count int64
	Size  [6]int64
}

// learns reports a prefill that a table of types has.
func learns(model *Model) bool {
	workload := &model.Workload
	return workload.Mode == costmodel.Infer && workload.NewTokens == 0 && workload.Precision == costmodel.BF16True && workload.Images == 0 &&
		(workload.Attention == "" || workload.Attention == value.SDPA) && workload.Kernels != value.PackageKernels &&
		slices.ContainsFunc(model.Layers, func(layer Layer) bool {
			return layer.Learned != nil && workload.Seq >= layer.Learned.Least && workload.Seq <= layer.Learned.Most
		})
}

// atMost bounds the bytes of storages.
func atMost(of storages, factors [6]int64) (sum float64) {
	for _, one := range of {
		for term, bytes := range one.Size {
			sum += float64(max(0, one.Count)) * float64(bytes) * float64(factors[term])
		}
	}
	return sum
}

// learnedTape is that prefill at the workload's sizes, of all layers together.
func learnedTape(model *Model) *tape {
	factors := factors(model)
	bytes := func(of storages) (sum int64) {
		for _, one := range of {
			var size int64
			for term, factor := range one.Size {
				size += factor * factors[term]
			}
			sum += one.Count * (size + allocator.Rounding(size))
		}
		return sum
	}
	var order []int
	for i := range model.Layers {
		if model.Layers[i].Learned != nil {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int { return model.Layers[i].Learned.Rank - model.Layers[j].Learned.Rank })
	units := unitsByLayer(model)
	byUnit := func(of map[string]storages) map[int]int64 { return sumByUnit(units, of, bytes) }
	out := &tape{layers: make([]*tapedLayer, len(model.Layers)), learned: true}
	var before int64
	for _, i := range order {
		step := model.Layers[i].Learned
		layer := &tapedLayer{saved: bytes(step.Saved), products: step.Products, copied: byUnit(step.Copied)}
		for _, moment := range step.Forward {
			layer.forward = append(layer.forward, tapedMoment{bytes(moment.Bytes) + before, byUnit(moment.Past)})
		}
		before += layer.saved
		if model.Workload.Strategy == costmodel.DeviceMap {
			out.returned += bytes(step.Returned)
		} else {
			layer.saved += bytes(step.Returned)
		}
		out.layers[i] = layer
	}
	return out
}
