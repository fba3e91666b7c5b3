package serve

import "github.com/devmap-dev/devmap/costmodel/serving"

// Fit returns what llama.cpp's own --fit chooses, and whether all blocks then have a place on its
// devices (common/fit.cpp, common_params_fit_impl, steps 1 to 3). It measures with layers split by
// free memory, and reduces an open context on a line so that the sum fits. Then it fills the devices
// from the last to the first. With experts it does so in steps of its own: the answer then has the
// split by free memory.
func Fit(question Question) (answer *Answer, whole bool) {
	free := question.Free()
	question.DraftOn = -1
	model := question.Model
	question.Set.Outputs = max(question.Set.Outputs, question.Set.Sequences)
	_, counts := serving.Layers(model.Units(), free, model.Units())
	at := func(context int64) *Answer {
		question.Set.Context = context
		return question.Given(counts, false)
	}
	longest := question.Set.Context
	open := longest == 0
	if open {
		longest = max(step, model.Trained)
	}
	targets := question.limits(1, make([]serving.Memory, len(free)))
	whole = true
	answer = at(longest)
	for i := range answer.Devices {
		whole = whole && answer.Devices[i].Total() <= targets[i]
	}
	if whole {
		return answer, true
	}
	if open {
		answer = at(question.reduced(longest, targets, at))
	}
	if len(targets) == 1 && open && answer.Set.Context > shortest { // it does not check its answer
		return answer, true
	}
	back, host := question.filledBack(answer, targets)
	if model.Experts > 0 {
		return answer, host == 0
	}
	way := placed{host: min(host, len(model.Blocks))}
	return question.placed(question.settings(way, answer.Set.Context), back), host == 0
}

// Free are llama.cpp's own parts for -ts: the free memory of each device.
func (question *Question) Free() []float32 {
	free := make([]float32, len(question.Devices))
	for i, device := range question.Devices {
		free[i] = float32(device.Budget - device.Context)
	}
	return free
}

// reduced is the context with which the sum of all devices fits, if each token takes as much.
func (question *Question) reduced(longest int64, targets []int64, at func(context int64) *Answer) int64 {
	sum := func(answer *Answer) (used, weights int64) {
		for i := range answer.Devices {
			used += answer.Devices[i].Total()
			weights += answer.Devices[i].Weights
		}
		return used, weights
	}
	var target int64
	for _, limit := range targets {
		target += limit
	}
	most, weights := sum(at(longest))
	if most <= target || longest <= shortest {
		return longest
	}
	if count := int64(len(targets)); count > 1 {
		waste := int64(2) // halves of a layer, or sixths with experts
		if question.Model.Experts > 0 {
			waste = 6
		}
		target -= (count + 1) * (weights / int64(len(question.Model.Blocks))) / waste
	}
	least, _ := sum(at(shortest))
	if target <= least {
		return shortest
	}
	context := shortest + (longest-shortest)*(target-least)/(most-least)
	return max(context-context%step, shortest)
}

// filledBack fills devices from the last to the first, and returns the units of each and the blocks
// left for the host. While a device is filled, the other blocks are on the host: devices work at a time
// in the last step alone.
func (question *Question) filledBack(answer *Answer, targets []int64) (counts []int, host int) {
	set := answer.Set
	end := question.Model.Units()
	counts = make([]int, len(targets))
	for i := len(targets) - 1; i >= 0; i-- {
		first := end
		for ; first > 0; first-- {
			set.HostBlocks = int64(first) - 1 // the others are there until their device has its turn
			set.Pipelined = first == 1 && len(targets) > 1
			if set.Run(question.Model, first-1, end).Total()+answer.Extra[i].Total() > targets[i] {
				break
			}
		}
		counts[i], end = end-first, first
	}
	return counts, end
}
