package boundprice

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// of is what all items are worth at the prices asked for, over what the devices
// can take.
func (try *trial) of() float64 {
	worth, taken := 0.0, 0.0
	for _, price := range try.asked {
		worth += price
	}
	for at, most := range try.most {
		taken += most * try.lp.count[at]
	}
	return worth / taken
}

// judge takes over prices that seem better than the best so far.
func (try *trial) judge() (better bool) {
	ratio, taken := try.of(), 0.0
	for at, most := range try.most {
		taken += most * try.lp.count[at]
	}
	if !(ratio > try.ratio) || math.IsInf(ratio, 1) {
		return false
	}
	if ratio > try.ratio+1e-4 {
		try.stale = 0
	}
	try.ratio = ratio
	for item, price := range try.asked {
		try.centre[item] = price / taken
	}
	return true
}

// volume makes one step along what the devices have taken too little of.
func (try *trial) volume(ctx context.Context) outcome {
	taken, done := try.take(ctx)
	switch {
	case ctx.Err() != nil:
		return open
	case !done:
		return stuck
	case try.of() > refutes:
		if is := try.exactly(ctx); is != open {
			return is
		}
	default:
	}
	try.stale++
	if try.roughly && try.stale > roughStale {
		try.refine()
		return open
	}
	if try.judge() {
		try.step = min(1.1*try.step, 1.5)
	}
	if try.stale%10 == 9 {
		try.step *= 0.7
	}
	if try.mean == nil {
		try.mean = taken
	}
	if try.stale < volumeStale && try.rounds < volumeRounds && try.along(taken) {
		return open
	}
	return try.program()
}

// program goes over to the linear program, with the prices near the best so far.
func (try *trial) program() outcome {
	if try.lp.tooLarge() {
		return stuck
	}
	try.step, try.box = 0, firstBox
	try.smooth = append(try.smooth, try.centre...)
	for at := range try.rent {
		try.rent[at] = 1 / graph.Sum(try.lp.count)
	}
	try.boxed()
	return open
}

// take finds a dearest set of each kind, and how often each item is in those of
// all devices.
func (try *trial) take(ctx context.Context) (taken []float64, done bool) {
	taken = make([]float64, len(try.asked))
	for at, walk := range try.walkers {
		var sets []found
		most, done := 0.0, true
		if try.roughly {
			most, sets, done = walk.rough(ctx, try.asked, try.limit)
		} else {
			sets = walk.glance(ctx, try.asked, try.limit, 0)
		}
		if !done {
			return nil, false
		}
		dearest := found{}
		for _, set := range sets {
			try.learn(at, set)
			if set.worth > dearest.worth {
				dearest = set
			}
		}
		try.most[at] = max(most, dearest.worth)
		for _, item := range dearest.items {
			taken[item] += try.lp.count[at]
		}
	}
	return taken, true
}

// refine goes on from the best prices with walks that give nothing away: that
// may be all that there is to gain.
func (try *trial) refine() {
	try.roughly, try.stale, try.ratio, try.mean, try.step = false, 0, 0, nil, 1
	copy(try.asked, try.centre)
	for _, walk := range try.walkers {
		walk.cells = walk.fine()
	}
}

// along sets the next prices; false where there is nowhere to go.
func (try *trial) along(taken []float64) bool {
	const remember, aim = 0.7, 0.01
	norm := 0.0
	for item := range try.mean {
		try.mean[item] = remember*try.mean[item] + (1-remember)*taken[item]
		slope := (1 - try.mean[item]) * try.scale[item]
		norm += slope * slope
	}
	if norm == 0 {
		return false
	}
	length := try.step * max(aim, 1+aim-try.ratio) / norm
	for item := range try.asked {
		try.asked[item] = try.centre[item] + length*(1-try.mean[item])*try.scale[item]*try.scale[item]
	}
	return true
}
