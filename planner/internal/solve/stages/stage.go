package stages

import (
	"math"
)

// stages puts the stage between two sets before each label of the upper one, with each tensor
// degree.
func (attempt *probe) stages(upper, lower int) {
	for then := range attempt.labels[upper] {
		before := &attempt.labels[upper][then]
		for tensor := range attempt.Tensor {
			if attempt.lacks[tensor][upper] > attempt.lacks[tensor][lower] {
				continue
			}
			if next := attempt.fewest(upper, lower, before, tensor); next.data >= 0 {
				next.upper, next.then = int32(upper), int32(then)
				attempt.keep(lower, &next)
			}
		}
	}
}

// fewest returns the stage with the fewest replicas within the limit and the capacity. data is −1
// if there is none that can help.
func (attempt *probe) fewest(upper, lower int, before *label, tensor int) label {
	fast := attempt.fast[tensor]
	transfers := attempt.transfers[lower*len(attempt.Tensor)+tensor]
	for data, replicas := range attempt.Data {
		next := label{
			devices: before.devices + int32(replicas*attempt.Tensor[tensor]), replicas: before.replicas + int32(replicas),
			tensor: int32(tensor), data: int32(data),
		}
		if int(next.devices) > attempt.Devices || int(next.replicas) > attempt.Replicas || attempt.dominated(lower, &next) {
			break
		}
		if !attempt.rest(lower, attempt.Devices-int(next.devices)) {
			break
		}
		time := fast[data].time[upper] - fast[data].time[lower] + transfers/float64(replicas)
		if limit := attempt.limit + rounding*(fast[data].time[0]+time); time > limit {
			attempt.next = min(attempt.next, time)
			continue
		}
		next.inFlight = (next.replicas + int32(replicas) - 1) / int32(replicas)
		if attempt.fits(upper, lower, &next, time) {
			return next
		}
	}
	return label{data: -1}
}

// rest reports that the devices can run the lower set in the earlier stages, and send its outputs.
func (attempt *probe) rest(lower, devices int) bool {
	if lower == attempt.sets.Empty {
		return true
	}
	return attempt.enough(attempt.work[lower]+attempt.sends[lower], devices) && attempt.hold[lower] <= float64(devices)*attempt.Capacity*(1+rounding)
}

// fits decides whether a stage fits whose fastest choices are within the limit. It tries their
// memory, the least memory, the relaxed choice between the two, and then the exact choice.
func (attempt *probe) fits(upper, lower int, next *label, time float64) bool {
	tensor, data, inFlight := int(next.tensor), int(next.data), int(next.inFlight)
	capacity := attempt.Capacity * (1 + rounding)
	fast := &attempt.fast[tensor][data]
	if (fast.inFlight[upper]-fast.inFlight[lower])*float64(inFlight)+fast.fixed[upper]-fast.fixed[lower] <= capacity {
		return true
	}
	if least := attempt.least(tensor, inFlight); least[upper]-least[lower] > capacity {
		return false
	}
	if math.IsInf(attempt.limit, 1) {
		return true
	}
	seen := attempt.view(tensor, data, inFlight)
	need := seen.fastest[upper] - seen.fastest[lower] - capacity
	low, high := seen.Rough(need)
	sack := &knapsack{view: seen, member: attempt.between(upper, lower)}
	if time+low <= attempt.limit && time+high > attempt.limit {
		low, high = sack.Relax(need)
	}
	if time+low <= attempt.limit && time+high > attempt.limit {
		low, _ = attempt.exact(sack, upper, lower, next, need)
	}
	if time+low > attempt.limit {
		attempt.next = min(attempt.next, time+low)
		return false
	}
	return true
}

// between returns a function that reports a node of the stage between two sets.
func (within *search) between(upper, lower int) func(node int) bool {
	return func(node int) bool { return within.sets.Has(upper, node) && !within.sets.Has(lower, node) }
}

// exact solves the whole knapsack, and caches the result.
func (attempt *probe) exact(sack *knapsack, upper, lower int, next *label, need float64) (low, high float64) {
	key := stageKey{int32(upper), int32(lower), next.tensor, next.data, next.inFlight}
	known, ok := attempt.solved[key]
	if !ok {
		known.lower, known.upper, _ = sack.Solve(need)
		attempt.solved[key] = known
	}
	return known.lower, known.upper
}

// dominated reports that some label of the set uses no more devices and replicas.
func (attempt *probe) dominated(lower int, next *label) bool {
	for i := range attempt.labels[lower] {
		if other := &attempt.labels[lower][i]; other.devices <= next.devices && other.replicas <= next.replicas {
			return true
		}
	}
	return false
}

// keep adds a nondominated label, and removes those that it dominates.
func (attempt *probe) keep(lower int, next *label) {
	labels, count := attempt.labels[lower], 0
	for i := range labels {
		if labels[i].devices < next.devices || labels[i].replicas < next.replicas {
			labels[count] = labels[i]
			count++
		}
	}
	attempt.labels[lower] = append(labels[:count], *next)
}

// plan returns the pipeline of a probe that reached the empty set, with the best choices of every
// stage.
func (attempt *probe) plan() *Plan {
	plan := &Plan{Stage: make([]int, len(attempt.Nodes)), Choice: make([]int, len(attempt.Nodes))}
	lower, of := attempt.sets.Empty, attempt.labels[attempt.sets.Empty][0]
	for lower != 0 {
		upper := int(of.upper)
		nodes := attempt.sets.Nodes(upper, lower)
		seen := attempt.view(int(of.tensor), int(of.data), int(of.inFlight))
		need := -attempt.Capacity * (1 + rounding)
		for _, node := range nodes { // in the order of Score's sums, not by differences
			_, memory := seen.Nodes[node].Fastest()
			need += memory
		}
		sack := &knapsack{view: seen, member: attempt.between(upper, lower)}
		_, _, option := sack.Solve(need)
		for _, node := range nodes {
			plan.Stage[node], plan.Choice[node] = len(plan.Stages), sack.Nodes[node].Choice[option[node]]
		}
		plan.Stages = append(plan.Stages, Degrees{attempt.Data[of.data], attempt.Tensor[of.tensor]})
		lower, of = upper, attempt.labels[upper][of.then]
	}
	return plan
}
