package boundprice

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"
)

// start asks at the best of the prices that refuted a lower load and of those that did
// not refute a higher one.
func (try *trial) start(ctx context.Context) outcome {
	for _, prices := range append(try.failed, try.prices) {
		copy(try.asked, prices)
		if !try.measure(ctx) {
			return stuck
		}
		if try.of() > refutes {
			if is := try.exactly(ctx); is != open {
				return is
			}
		}
		try.judge()
	}
	if ctx.Err() != nil {
		return open
	}
	if try.ratio <= 0 {
		return stuck
	}
	try.beyond = beyond
	try.bundle = newBundle(try.lp.sets, try.lp.count, try.scale)
	try.bundle.begin(try.centre, try.rent)
	return open
}

// measure finds dear sets of each kind, nearly the dearest.
func (try *trial) measure(ctx context.Context) (done bool) {
	for at, walk := range try.walkers {
		try.most[at] = try.known(at)
		for _, set := range walk.glance(ctx, try.asked, try.limit, try.most[at]) {
			try.learn(at, set)
			try.most[at] = max(try.most[at], set.worth)
		}
	}
	return ctx.Err() == nil
}

// known is what the dearest set of a kind is worth that is known to be within the limit.
func (try *trial) known(at int) (most float64) {
	for _, set := range try.lp.sets {
		if set.kind != at || set.load > try.limit {
			continue
		}
		worth := 0.0
		for _, item := range set.items {
			worth += try.asked[item]
		}
		most = max(most, worth)
	}
	return most
}

// of is what all items are worth at the prices asked for, over what the devices
// can take.
func (try *trial) of() float64 { return floats.Sum(try.asked) / floats.Dot(try.most, try.lp.count) }

// judge takes over prices that seem better than the best so far, as those at which all
// devices take 1.
func (try *trial) judge() (better bool) {
	ratio, taken := try.of(), floats.Dot(try.most, try.lp.count)
	if !(ratio > try.ratio) || math.IsInf(ratio, 1) {
		return false
	}
	if ratio > try.ratio+gains*(1-try.ratio) {
		try.stale = 0
	}
	try.ratio = ratio
	copy(try.centre, try.asked)
	copy(try.rent, try.most)
	floats.Scale(1/taken, try.centre)
	floats.Scale(1/taken, try.rent)
	return true
}

// Prices are asked for that are worth beyond more than all devices take, by the sets
// known, to within a part closely of what is gained; to within near is as good as there
// may be. A trial is stale that in so many
// rounds has not gained a part gains of what is left to 1, near which it has longer.
const (
	beyond           = 2e-3
	closely, near    = 0.05, 0.5
	gains            = 0.1
	stale, staleNear = 10, 20
)

// level asks at the prices nearest to the best at which the sets known say that the
// load is refuted (a level method with a level that is known). Either it is, or there
// is another set.
func (try *trial) level(ctx context.Context) outcome {
	if !try.project() {
		return try.finish()
	}
	copy(try.asked, try.bundle.price)
	if is := try.ask(ctx); is != open || ctx.Err() != nil {
		return is
	}
	try.stale++
	if try.judge() {
		try.bundle.begin(try.centre, try.rent)
	}
	if try.stale > staleNear || try.stale > stale && (try.ratio < 1-beyond || try.mayWiden()) {
		return try.finish()
	}
	return open
}

// project goes to the next prices. Where there are none that are worth so much by the sets
// known, there may be some that are worth a little less.
func (try *trial) project() bool {
	before := try.bundle.work
	defer func() { try.projected += try.bundle.work - before }()
	for ; try.beyond > beyond/100; try.beyond /= 4 {
		target := 1 + try.beyond
		if gain := target - try.ratio; try.bundle.project(target, closely*gain) <= near*gain {
			return true
		}
		try.bundle.begin(try.centre, try.rent)
	}
	return false
}

// ask looks for sets that are worth more than the rents: with a glance, which tells
// where prices are no better than the best, and else for sure.
func (try *trial) ask(ctx context.Context) outcome {
	for at, walk := range try.walkers {
		try.most[at] = max(0, try.bundle.rent[at])
		_, sets := walk.relax(walk, try.asked, try.limit)
		for _, set := range sets {
			if set.worth > try.most[at]*refutes {
				try.most[at] = set.worth
				try.learn(at, set)
			}
		}
	}
	if try.of() <= try.ratio {
		return open
	}
	return try.exactly(ctx)
}

// mayWiden says that wider walks are to be had, which tell more than a long search by these.
func (try *trial) mayWiden() bool { return !try.staged && try.widens(try.largest) }

// finish ends the search for prices far from the bound; near it the linear program
// tells whether there are any, from the best so far.
func (try *trial) finish() outcome {
	if try.ratio*try.limit > try.own*(1+leastStride) || try.lp.tooLarge() || try.mayWiden() {
		return stuck
	}
	try.until = max(try.until, try.work()+try.patience)
	try.box = firstBox
	try.smooth = append(try.smooth, try.centre...)
	try.boxed()
	return open
}
