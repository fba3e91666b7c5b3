package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/minmax"
	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
	"github.com/devmap-dev/devmap/planner/internal/solve/highs"
)

// answer is what HiGHS made of one model, in MiB.
type answer struct {
	value, bound float64
	took         time.Duration
	proved       bool
}

func (a answer) String() string { return seconds(a.took, a.proved) }

// sooner is the answer with the earlier proof.
func (a answer) sooner(b answer) answer {
	if b.proved && (!a.proved || b.took < a.took) {
		return b
	}
	return a
}

// agrees compares the two: no bound above the other's value, to a tenth of the
// unit that all values are whole in.
func (a answer) agrees(own assign.Solution) error {
	const tenth = 0.1
	if a.bound > own.Value/mib+tenth || own.LowerBound/mib > a.value+tenth {
		return fmt.Errorf("HiGHS has %v over %v, devmap %v over %v", a.value, a.bound, own.Value/mib, own.LowerBound/mib)
	}
	return nil
}

// minMaxHighs solves both models, each to an absolute gap below 1 MiB, the unit
// of all sizes.
func minMaxHighs(ctx context.Context, instance minmax.Instance, limit time.Duration) (byItem, bySize answer, err error) {
	if byItem, err = timed(ctx, itemModel(instance), limit); err != nil {
		return byItem, bySize, err
	}
	bySize, err = timed(ctx, sizeModel(instance), limit)
	return byItem, bySize, err
}

// timed gives HiGHS its limit, and ends it at twice that: it does not look at
// its clock everywhere.
func timed(ctx context.Context, model *highs.Model, limit time.Duration) (answer, error) {
	hard, cancel := context.WithTimeout(ctx, 2*limit)
	defer cancel()
	begin := time.Now()
	result, err := highs.Solve(hard, model, highs.Options{TimeLimit: limit, AbsoluteGap: 0.999})
	if hard.Err() != nil && ctx.Err() == nil {
		return answer{value: math.Inf(1), took: time.Since(begin)}, nil
	}
	return answer{result.Objective, result.Bound, time.Since(begin), result.Status == highs.Optimal}, err
}

// itemModel has a column 0 or 1 for each item and device, and none for item i
// on a device above i, which breaks the symmetry of like devices. Items are in
// falling order, the largest load is whole.
func itemModel(instance minmax.Instance) *highs.Model {
	sizes := falling(instance)
	model := &highs.Model{}
	most := model.Column(highs.Column{Cost: 1, Upper: math.Inf(1), Integer: true})
	loads := make([][]highs.Term, instance.Devices)
	for i, size := range sizes {
		var once []highs.Term
		for device := range min(i+1, instance.Devices) {
			x := model.Column(highs.Column{Upper: 1, Integer: true})
			once = append(once, highs.Term{Column: x, Coefficient: 1})
			loads[device] = append(loads[device], highs.Term{Column: x, Coefficient: float64(size)})
		}
		model.Row(1, 1, once...)
	}
	capped(model, most, loads)
	return model
}

// sizeModel has a whole column for each size and device: how many.
func sizeModel(instance minmax.Instance) *highs.Model {
	sizes := falling(instance)
	model := &highs.Model{}
	most := model.Column(highs.Column{Cost: 1, Upper: math.Inf(1), Integer: true})
	loads := make([][]highs.Term, instance.Devices)
	for i := 0; i < len(sizes); {
		total := 0
		for i+total < len(sizes) && sizes[i+total] == sizes[i] {
			total++
		}
		var all []highs.Term
		for device := range loads {
			y := model.Column(highs.Column{Upper: float64(total), Integer: true})
			all = append(all, highs.Term{Column: y, Coefficient: 1})
			loads[device] = append(loads[device], highs.Term{Column: y, Coefficient: float64(sizes[i])})
		}
		model.Row(float64(total), float64(total), all...)
		i += total
	}
	capped(model, most, loads)
	return model
}

// capped keeps every load below the column most.
func capped(model *highs.Model, most int, loads [][]highs.Term) {
	for _, load := range loads {
		model.Row(math.Inf(-1), 0, append(load, highs.Term{Column: most, Coefficient: -1})...)
	}
}

func falling(instance minmax.Instance) []int64 {
	sizes := make([]int64, len(instance.Sizes))
	for i, size := range instance.Sizes {
		sizes[i] = size / mib
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	return sizes
}
