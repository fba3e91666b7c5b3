package serve

// balanced is the placement of a context with the smallest largest share of a budget. The search
// ends when no share between the last two differs from both by more than precision.
func (question *Question) balanced(way placed, context int64, full bool) *Answer {
	const precision = 1e-9
	set := question.settings(way, context)
	counts := make([]int, len(question.Devices))
	low, high := 0.0, 1.0 // nothing fits into low, everything into high
	for high-low > precision {
		if middle := (low + high) / 2; fillTo(question.Model, &set, question.limits(middle), nil) {
			high = middle
		} else {
			low = middle
		}
	}
	fillTo(question.Model, &set, question.limits(high), counts)
	answer := &Answer{Set: set, InTurn: way.inTurn, Counts: counts, Full: full, Bound: low}
	answer.Devices, answer.OnHost = set.Devices(question.Model, counts)
	for i, device := range question.Devices {
		answer.Share = max(answer.Share, float64(answer.Devices[i].Total()+device.Overhead(counts[i]))/float64(device.Budget))
		answer.Bound = max(answer.Bound, float64(device.Context)/float64(device.Budget)) // of a device without units
	}
	return answer
}

// infeasible says what does not fit.
func (question *Question) infeasible(context int64) error {
	blocks := len(question.Model.Blocks)
	set := question.settings(placed{host: blocks}, context)
	err := &InfeasibleError{Device: -1, Context: context, Needs: set.Run(question.Model, blocks, blocks+1).Total()}
	for _, limit := range question.limits(1) {
		err.Has += max(0, limit)
	}
	return err
}
