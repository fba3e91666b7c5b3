package serve

import (
	"github.com/devmap-dev/devmap/costmodel/serving"
)

// balanced is the placement of a context with the smallest largest share of a budget. The search
// ends when no share between the last two differs from both by more than precision.
func (question *Question) balanced(way placed, context int64, full bool) *Answer {
	const precision = 1e-9
	set := question.settings(way, context)
	extra, _ := question.extra(&set, nil)
	counts := make([]int, len(question.Devices))
	low, high := 0.0, 1.0 // nothing fits into low, everything into high
	for high-low > precision {
		if middle := (low + high) / 2; question.fillTo(&set, middle, extra, nil) {
			high = middle
		} else {
			low = middle
		}
	}
	question.fillTo(&set, high, extra, counts)
	question.faster(&set, high, extra, counts)
	answer := question.placed(set, counts)
	answer.InTurn, answer.Full, answer.Bound = way.inTurn, full, low
	for i, device := range question.Devices { // of a device without units
		answer.Bound = max(answer.Bound, float64(device.Overhead(int(extra[i].Total()))+extra[i].Total())/float64(device.Budget))
	}
	return answer
}

// Given is the answer for a placement that is chosen already: so many units of each device, with the
// blocks before them on the host. It may not fit: its share is then above 1.
func (question *Question) Given(counts []int, inTurn bool) *Answer {
	way := placed{host: question.Model.Units(), experts: int(question.Set.HostExperts), inTurn: inTurn}
	for _, count := range counts {
		way.host -= count
	}
	answer := question.placed(question.settings(way, question.Set.Context), counts)
	answer.InTurn = inTurn
	return answer
}

// Largest is the device with the largest budget, of equal ones the last.
func (question *Question) Largest() int {
	largest := 0
	for i, device := range question.Devices {
		if device.Budget >= question.Devices[largest].Budget {
			largest = i
		}
	}
	return largest
}

// placed is what all devices hold.
func (question *Question) placed(set serving.LlamaCPP, counts []int) *Answer {
	answer := &Answer{Set: set, Counts: counts}
	answer.Devices, answer.OnHost = set.Devices(question.Model, counts)
	var onHost int64
	answer.Extra, onHost = question.extra(&set, counts)
	answer.OnHost.Weights += onHost
	for i, device := range question.Devices {
		used := &answer.Devices[i]
		used.Weights, used.Cache, used.Compute = used.Weights+answer.Extra[i].Weights, used.Cache+answer.Extra[i].Cache, used.Compute+answer.Extra[i].Compute
		answer.Share = max(answer.Share, float64(used.Total()+device.Overhead(int(used.Weights)))/float64(device.Budget))
	}
	return answer
}

// extra is what each device holds of the draft and of the encoder, and what the host does. A draft
// that is split as the model follows the units of the devices, counts (common/speculative.cpp,
// common_base_params_to_speculative).
func (question *Question) extra(set *serving.LlamaCPP, counts []int) (devices []serving.Memory, onHost int64) {
	devices = make([]serving.Memory, len(question.Devices))
	if question.Draft != nil {
		draft, units := *set, question.Draft.Units()
		draft.HostBlocks, draft.HostExperts, draft.Pipelined, draft.Outputs = 0, 0, false, set.Sequences
		onHost = question.Draft.Input
		if question.DraftOn >= 0 {
			devices[question.DraftOn] = draft.Run(question.Draft, 0, units)
		} else {
			split := make([]float32, len(counts))
			for i, count := range counts {
				split[i] = float32(count)
			}
			draft.Pipelined = len(counts) > 1
			_, its := serving.Layers(units, split, units)
			devices, _ = draft.Devices(question.Draft, its)
		}
	}
	if question.Encoder != nil {
		devices[0].Weights += question.Encoder.Weights
		devices[0].Compute += question.Encoder.Compute
	}
	return devices, onHost
}

// infeasible says what does not fit.
func (question *Question) infeasible(context int64) error {
	blocks := len(question.Model.Blocks)
	set := question.settings(placed{host: blocks}, context)
	err := &InfeasibleError{Device: -1, Context: context, Needs: set.Run(question.Model, blocks, blocks+1).Total()}
	extra, _ := question.extra(&set, nil)
	for i, limit := range question.limits(1, extra) {
		if own := extra[i].Total(); limit < 0 && own > 0 {
			device := question.Devices[i]
			return &InfeasibleError{Device: i, Extra: true, Context: context, Needs: device.Overhead(1) + own, Has: device.Budget}
		}
		err.Has += max(0, limit)
	}
	return err
}
