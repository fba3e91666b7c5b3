package serve

import "github.com/devmap-dev/devmap/costmodel/serving"

// Fit returns the context that llama.cpp's own --fit chooses, and whether all blocks then have a
// place on its devices (common/fit.cpp, common_params_fit_impl, steps 1 to 3). It measures with
// layers split by free memory, and reduces the context on a line so that the sum fits. Then it
// fills the devices from the last to the first.
func Fit(question Question) (context int64, whole bool) {
	free := make([]float32, len(question.Devices))
	for i, device := range question.Devices {
		free[i] = float32(device.Budget - device.Context)
	}
	model, targets := question.Model, question.limits(1)
	longest := max(step, model.Trained)
	_, counts := serving.Layers(model.Units(), free, model.Units())
	used := func(context int64) (sum int64, fits bool, weights int64) {
		set := question.settings(placed{}, context)
		set.Outputs = max(set.Outputs, question.Set.Sequences)
		memory, _ := set.Devices(model, counts)
		fits = true
		for i := range memory {
			sum += memory[i].Total()
			weights += memory[i].Weights
			fits = fits && memory[i].Total() <= targets[i]
		}
		return sum, fits, weights
	}
	most, fits, weights := used(longest)
	if fits {
		return longest, true
	}
	var target int64
	for _, limit := range targets {
		target += limit
	}
	context = longest
	if count := int64(len(targets)); most > target && longest > shortest {
		if count > 1 {
			waste := int64(2) // halves of a layer, or sixths with experts
			if model.Experts > 0 {
				waste = 6
			}
			target -= (count + 1) * (weights / int64(len(model.Blocks))) / waste
		}
		context = shortest
		if least, _, _ := used(shortest); target > least {
			context += (longest - shortest) * (target - least) / (most - least)
			context = max(context-context%step, shortest)
			if count == 1 { // it does not check its answer
				return context, true
			}
		}
	}
	return context, question.filledBack(context, targets)
}

// filledBack fills devices from the last to the first, and reports whether all blocks have a place.
// While a device is filled, those before it are empty: no device works at a time with another.
func (question *Question) filledBack(context int64, targets []int64) bool {
	set := question.settings(placed{}, context)
	set.Pipelined = false
	end := question.Model.Units()
	for i := len(targets) - 1; i >= 0; i-- {
		first := end
		for first > 0 && set.Run(question.Model, first-1, end).Total() <= targets[i] {
			first--
		}
		end = first
	}
	return end == 0
}
