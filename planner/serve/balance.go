package serve

import (
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/costmodel/serving"
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
			for _, budget := range question.Budgets {
				if share := total / float64(budget); budget > 0 && share <= 1 {
					shares = append(shares, share)
				}
			}
		}
	}
	slices.Sort(shares)
	counts := make([]int, len(question.Budgets))
	best := sort.Search(len(shares), func(i int) bool {
		return fillTo(model, &set, way.host, scaled(question.Budgets, shares[i]), nil)
	})
	share := 1.0
	if best < len(shares) {
		share = shares[best]
	}
	fillTo(model, &set, way.host, scaled(question.Budgets, share), counts)
	answer := &Answer{Set: set, Host: way.host, Counts: counts, Limit: limit, Share: share}
	answer.Devices, answer.OnHost = set.Devices(model, way.host, counts)
	return answer
}

// scaled are parts of budgets. A part is rounded up to the next whole byte, so that the run that
// gave the share fits.
func scaled(budgets []int64, share float64) []int64 {
	parts := make([]int64, len(budgets))
	for i, budget := range budgets {
		parts[i] = min(budget, int64(float64(budget)*share)+1)
	}
	return parts
}

// infeasible says what does not fit.
func (question *Question) infeasible(context int64) error {
	blocks := len(question.Model.Blocks)
	set := question.settings(placed{host: blocks}, context)
	err := &InfeasibleError{Context: context, Needs: set.Run(question.Model, blocks, blocks+1).Total()}
	for _, budget := range question.Budgets {
		err.Has += budget
	}
	return err
}

// Usual is what llama.cpp does without -ts: it splits by free memory. It returns the longest
// context, 0 if not even the shortest fits.
func Usual(question Question, free []int64) (context int64, counts []int) {
	split := make([]float32, len(free))
	for i, bytes := range free {
		split[i] = float32(bytes)
	}
	_, counts = serving.Layers(question.Model.Units(), split, question.Model.Units())
	fits := func(context int64) bool {
		set := question.settings(placed{}, context)
		devices, _ := set.Devices(question.Model, 0, counts)
		for i := range devices {
			if devices[i].Total() > question.Budgets[i] {
				return false
			}
		}
		return true
	}
	most := int(max(step, question.Model.Trained) / step)
	return int64(sort.Search(most, func(i int) bool { return !fits(int64(i+1) * step) })) * step, counts
}
