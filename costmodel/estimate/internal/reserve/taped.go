package reserve

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// Taped is the first two steps of a GPU with the whole model, request by request, as a table of types
// has them. In the second, the optimizer has its states.
type Taped struct {
	model    *layers.Model
	requests []layers.Request
}

// Tape returns those of a model with AdamW's or SGD's states; nil if no table has them.
func Tape(model *layers.Model) *Taped {
	if model.Train && (model.Optimizer.EMA || !slices.Contains([]string{"", costmodel.AdamW, value.AdamWForeach, costmodel.SGD, value.SGDMomentum}, model.Optimizer.Kind)) {
		return nil
	}
	requests := layers.Requests(model)
	if requests == nil {
		return nil
	}
	return &Taped{model, requests}
}

// Peaks are the most bytes allocated and reserved. up: segments lie above those before them.
func (taped *Taped) Peaks(up bool) (allocated, reserved int64) {
	cache := allocator.NewCache()
	cache.Up = up
	residents := layers.Residents(taped.model)
	load(cache, residents)
	cache.ResetPeaks()
	waiting := taped.step(cache, true)
	if !taped.model.Train {
		return cache.PeakAllocated, cache.PeakReserved
	}
	counts := slices.Contains([]string{"", costmodel.AdamW}, taped.model.Optimizer.Kind) // a fused kernel reads its step on the GPU
	var temporary []*allocator.Block
	for _, tensor := range residents {
		if tensor.States > 0 && counts {
			cache.Alloc(0, 4)
		}
		for range tensor.States {
			cache.Alloc(0, tensor.Bytes)
		}
		if tensor.Transient > 0 {
			temporary = append(temporary, cache.Alloc(0, tensor.Transient))
		}
	}
	for _, block := range append(temporary, waiting...) {
		cache.Free(block)
	}
	taped.step(cache, false)
	return cache.PeakAllocated, cache.PeakReserved
}

// load makes the residents. Adapters are made in the model's type, and then cast one after another.
func load(cache *allocator.Cache, residents []layers.Resident) {
	var casts, tied []*allocator.Block
	for i := range residents {
		switch tensor := &residents[i]; {
		case tensor.Cast > 0:
			casts = append(casts, cache.Alloc(0, tensor.Cast))
		case tensor.Tied && tensor.Bytes > 0:
			tied = append(tied, cache.Alloc(0, tensor.Bytes))
		case tensor.Bytes > 0:
			cache.Alloc(0, tensor.Bytes)
		}
	}
	for _, block := range tied {
		cache.Free(block)
	}
	for i, tensor := range residents[len(residents)-len(casts):] {
		if tensor.Bytes != tensor.Cast {
			cache.Alloc(0, tensor.Bytes)
			cache.Free(casts[i])
		}
	}
	cache.Empty()
}

// step makes the storages of a step, and returns those that stay until the optimizer's. Inputs and
// workspaces are there from the first step on.
func (taped *Taped) step(cache *allocator.Cache, first bool) (waiting []*allocator.Block) {
	born := make([]*allocator.Block, 0, len(taped.requests))
	for i := range taped.requests {
		request := &taped.requests[i]
		if request.Until == layers.Ends {
			if block := born[request.At]; block != nil {
				cache.Free(block)
			}
			continue
		}
		var block *allocator.Block
		if request.Bytes > 0 && (first || request.Until != layers.Process) {
			block = cache.Alloc(0, request.Bytes)
		}
		if born = append(born, block); block != nil && request.Until == layers.Step {
			waiting = append(waiting, block)
		}
	}
	return waiting
}
