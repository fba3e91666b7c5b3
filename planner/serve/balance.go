package serve

import (
	"slices"
	"sort"
)

// balanced is the placement of a context with the smallest largest share of a budget. Every share
// is that of some run of units on some device, so that the smallest one that fits is found among
// them.
func (question *Question) balanced(way placed, context int64, limit int) *Answer {
	set := question.settings(way, context)
	model := question.Model
	var shares []float64
	for first := way.host; first < model.Units(); first++ {
		for end := first + 1; end <= model.Units(); end++ {
			total := float64(set.Run(model, first, end).Total())
			for _, device := range question.Devices {
				if share := (total + float64(device.Overhead())) / float64(device.Budget); share <= 1 {
					shares = append(shares, share)
				}
			}
		}
	}
	slices.Sort(shares)
	counts := make([]int, len(question.Devices))
	best := sort.Search(len(shares), func(i int) bool {
		return fillTo(model, &set, question.limits(shares[i]), nil)
	})
	share := 1.0
	if best < len(shares) {
		share = shares[best]
	}
	fillTo(model, &set, question.limits(share), counts)
	answer := &Answer{Set: set, Counts: counts, Limit: limit, Share: share}
	answer.Devices, answer.OnHost = set.Devices(model, counts)
	return answer
}

// infeasible says what does not fit.
func (question *Question) infeasible(context int64) error {
	blocks := len(question.Model.Blocks)
	set := question.settings(placed{host: blocks}, context)
	err := &InfeasibleError{Context: context, Needs: set.Run(question.Model, blocks, blocks+1).Total()}
	for _, limit := range question.limits(1) {
		err.Has += max(0, limit)
	}
	return err
}
