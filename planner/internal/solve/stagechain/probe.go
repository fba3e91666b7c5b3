package stagechain

import (
	"context"
	"math"
)

// rounding is the relative difference allowed between sums in different orders.
const rounding = 1e-12

// probe finds the pipeline with the least sum among those whose stages are all within the limit.
type probe struct {
	*Problem
	under *floors
	limit float64
	// most is the largest useful sum.
	most float64
	// next is the least time above the limit of a refused stage. Up to that limit the answer is the
	// same.
	next float64
	// open[from] lists the ways to run the units from there on.
	open    [][]partial
	stopped bool
}

// partial is a way to run the units from some unit on: its devices, stages and times, and the
// partial after it.
type partial struct {
	size, to, then  int32
	stages, devices int32
	sum, largest    float64
}

// ask fills open from the end of the chain. It calls Time once for each stretch, size and partial
// at its end. It keeps only nondominated partials of each place.
func (problem *Problem) ask(ctx context.Context, under *floors, limit, most float64) *probe {
	asked := &probe{Problem: problem, under: under, limit: limit, most: most, next: math.Inf(1), open: make([][]partial, problem.Units+1)}
	asked.open[problem.Units] = []partial{{}}
	for to := problem.Units; to > 0; to-- {
		if ctx.Err() != nil {
			asked.stopped = true
			return asked
		}
		if len(asked.open[to]) == 0 {
			continue
		}
		for from := to - 1; from >= 0; from-- {
			asked.stage(from, to)
		}
	}
	return asked
}

// stage puts units [from, to) before every partial at to.
func (asked *probe) stage(from, to int) {
	for size, devices := range asked.Sizes {
		for then := range asked.open[to] {
			rest := &asked.open[to][then]
			if !asked.feasible(rest, devices, from) {
				continue
			}
			time := asked.Time(from, to, size, int(rest.stages))
			if !(time <= asked.limit) {
				asked.next = min(asked.next, time)
				continue
			}
			next := partial{
				size: int32(size), to: int32(to), then: int32(then), stages: rest.stages + 1, devices: rest.devices + int32(devices),
				sum: rest.sum + time, largest: max(rest.largest, time),
			}
			if asked.does(from, &next) {
				asked.keep(from, &next)
			}
		}
	}
}

// does reports that the devices left can do the work before the partial within the limit and the
// sum. The sum over stages is least if one stage has all these devices.
func (asked *probe) does(from int, next *partial) bool {
	work, devices := asked.under.work[from], float64(asked.Devices-int(next.devices))
	if rest := asked.under.sum[from]; next.sum+rest > asked.most*(1+rounding) || devices > 0 && next.sum+work/devices > asked.most*(1+rounding) {
		return false
	}
	if work <= devices*asked.limit*(1+rounding) {
		return true
	}
	if devices > 0 {
		asked.next = min(asked.next, work/devices)
	}
	return false
}

// feasible reports that the devices and stages left are enough for this stage and the earlier ones.
func (asked *probe) feasible(rest *partial, devices, from int) bool {
	left, stages := asked.Devices-int(rest.devices)-devices, asked.MostStages-int(rest.stages)-1
	if from == 0 {
		return left == 0 && stages >= 0
	}
	return left > 0 && stages > 0
}

// keep adds a partial unless another dominates it, and removes those that it dominates.
func (asked *probe) keep(from int, next *partial) {
	partials := asked.open[from]
	count := 0
	for i := range partials {
		if partials[i].dominates(next) {
			return
		}
	}
	for i := range partials {
		if !next.dominates(&partials[i]) {
			partials[count] = partials[i]
			count++
		}
	}
	asked.open[from] = append(partials[:count], *next)
}

// dominates reports that every start of the other partial can precede this one, at no higher cost.
func (one *partial) dominates(other *partial) bool {
	return one.devices == other.devices && one.stages <= other.stages && one.sum <= other.sum
}

// best returns the pipeline with the least sum, nil if there is none.
func (asked *probe) best() (stages []Stage, largest, sum float64) {
	if asked.stopped || len(asked.open[0]) == 0 {
		return nil, 0, 0
	}
	least := &asked.open[0][0]
	for i := range asked.open[0] {
		if asked.open[0][i].sum < least.sum {
			least = &asked.open[0][i]
		}
	}
	largest, sum = least.largest, least.sum
	for from := 0; from < asked.Units; {
		stages = append(stages, Stage{From: from, To: int(least.to), Size: int(least.size)})
		from, least = int(least.to), &asked.open[least.to][least.then]
	}
	return stages, largest, sum
}
