package boundprice

import (
	"context"

	"gonum.org/v1/gonum/floats"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// exactly asks, for sure, whether the devices can take what the items are worth at the
// prices: no set may be worth more than its kind's most, and an equal part of what all
// items are worth beyond that. Either there is none, and the limit is refuted, or there
// are such sets: those that are handed back need not be the dearest, so that it asks
// again while all items seem to be worth more.
func (try *trial) exactly(ctx context.Context) outcome {
	for none := false; !none; {
		spare := floats.Sum(try.asked)/refutes - floats.Dot(try.most, try.lp.count)
		if spare < 0 {
			return open
		}
		none = true
		for at, walk := range try.walkers {
			try.most[at] += spare / floats.Sum(try.lp.count)
			sets, done := walk.price(ctx, try.asked, try.limit, try.most[at])
			if !done {
				return stuck
			}
			for _, set := range sets {
				none = false
				try.most[at] = max(try.most[at], set.worth)
				try.learn(at, set)
			}
		}
	}
	if try.of() <= 1+graph.Rounding {
		return open
	}
	copy(try.centre, try.asked)
	try.Proof = try.proof(try.limit, try.asked, try.most)
	return refuted
}

// boxed puts the box of prices around the centre and begins anew.
func (try *trial) boxed() {
	for item, price := range try.centre {
		try.lp.low[item], try.lp.high[item] = price-try.box*try.scale[item], price+try.box*try.scale[item]
	}
	try.lp.cold()
}

// generate solves the linear program over the sets known and asks for sets that
// are worth more than it says.
func (try *trial) generate(ctx context.Context) outcome {
	lp := try.lp
	lp.solve(ctx)
	if ctx.Err() != nil {
		return open
	}
	inside := lp.outside() < little
	const enough = 1 - 1e-4
	if lp.value() < enough && inside {
		return covered
	}
	before := len(lp.sets)
	for _, sure := range []bool{false, true} {
		for _, draw := range []float64{smoothing, 0} {
			if is := try.separate(ctx, draw, sure); is != open || ctx.Err() != nil || len(lp.sets) > before {
				copy(try.smooth, try.asked)
				copy(try.rent, try.most)
				return is
			}
		}
	}
	return try.widen(inside)
}

// little is how much the sides of the box may be used by a program that is taken for one without a box.
const little = 1e-3

// widen is what is left where no set is worth more than the program says: finer walks,
// then a larger box; inside is whether the program's prices lie within it.
func (try *trial) widen(inside bool) outcome {
	switch walk := try.walkers[0]; {
	case walk.cells < mostCells:
		for _, walk := range try.walkers {
			walk.cells *= 5
		}
	case !inside && try.box < mostBox:
		copy(try.centre, try.lp.dual)
		try.box *= 2
		try.boxed()
	case inside && try.lp.value() <= 1:
		return covered // for all that the program's figures tell
	default:
		return stuck
	}
	return open
}

// separate asks for sets at prices between the program's and the centre's that
// are worth more than the program says; surely, or with a glance.
func (try *trial) separate(ctx context.Context, draw float64, sure bool) outcome {
	for item := range try.asked {
		try.asked[item] = draw*try.smooth[item] + (1-draw)*try.lp.dual[item]
	}
	for at := range try.walkers {
		try.most[at] = max(0, draw*try.rent[at]-(1-draw)*try.lp.dual[try.lp.items+at])
	}
	if sure {
		return try.exactly(ctx)
	}
	for at, walk := range try.walkers {
		for _, set := range walk.glance(ctx, try.asked, try.limit, try.most[at]) {
			try.most[at] = max(try.most[at], set.worth)
			try.learn(at, set)
		}
	}
	return open
}
