package boundprice

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// trial looks for prices that refute one load. It begins with the volume
// algorithm (Barahona and Anbil, Mathematical Programming 87, 2000), which is
// quick to good prices, and goes on by column generation, at prices that
// follow the program's slowly (Neame, "Nonsmooth dual methods in integer
// programming", 1999).
type trial struct {
	*Bound
	limit float64
	// centre are the best prices so far, at which all devices take 1, as far as is
	// known; ratio is what all items are worth then.
	centre []float64
	// smooth and rent are the prices of items and devices asked for last by the
	// linear program.
	smooth, rent  []float64
	ratio         float64
	rounds, stale int
	until         int // work

	roughly     bool      // walks give a little away
	asked, most []float64 // prices of this round, and what devices take
	mean        []float64 // share of each item that the devices took lately
	step        float64   // of the volume algorithm; 0: it is over
	box         float64
}

// outcome of a round.
type outcome int

const (
	open    outcome = iota
	refuted         // the devices cannot take all items within the limit
	covered         // fractions of sets cover all items
	stuck
)

// What a trial may take. Walks are rough at first: labels are joined in
// cells, which grow finer where that does not help.
const (
	volumeRounds = 300
	volumeStale  = 50
	roughStale   = 20
	firstCells   = 300
	mostCells    = 40_000
	mostRounds   = 1500
	firstBox     = 0.1
	smoothing    = 0.6
	fewStates    = 4000
	mostBox      = 50
)

func newTrial(bound *Bound, limit float64, work int) *trial {
	try := &trial{Bound: bound, limit: limit, until: bound.work() + work, centre: append([]float64(nil), bound.prices...), step: 1}
	try.asked = append([]float64(nil), try.centre...)
	try.rent, try.most = make([]float64, len(bound.kinds)), make([]float64, len(bound.kinds))
	try.roughly = true
	for _, walk := range bound.walkers {
		try.roughly = try.roughly && walk.total <= fewStates
	}
	for _, walk := range bound.walkers {
		if walk.cells = firstCells; !try.roughly {
			walk.cells = walk.fine()
		}
	}
	return try
}

// round asks for the dearest sets at one vector of prices.
func (try *trial) round(ctx context.Context) outcome {
	if try.rounds++; try.rounds > mostRounds || try.work() > try.until {
		return stuck
	}
	if try.step > 0 {
		return try.volume(ctx)
	}
	return try.generate(ctx)
}

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

// refutes is a ratio that rounding does not explain.
const refutes = 1 + 1e-7

// volume makes one step along what the devices have taken too little of.
func (try *trial) volume(ctx context.Context) outcome {
	taken := make([]float64, len(try.asked))
	for at, walk := range try.walkers {
		dearest := found{}
		most, sets, done := 0.0, []found(nil), true
		if try.roughly {
			most, sets, done = walk.rough(ctx, try.asked, try.limit)
		} else {
			sets = walk.glance(ctx, try.asked, try.limit, 0)
		}
		if !done {
			return stuck
		}
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
	if ctx.Err() != nil {
		return open
	}
	if try.of() > refutes {
		if is := try.exactly(ctx); is != open {
			return is
		}
	}
	if try.stale++; try.roughly && try.stale > roughStale {
		// What is given away by rough walks may be all that there is to gain.
		try.roughly, try.stale, try.ratio, try.mean, try.step = false, 0, 0, nil, 1
		copy(try.asked, try.centre)
		for _, walk := range try.walkers {
			walk.cells = walk.fine()
		}
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
	if try.stale >= volumeStale || try.rounds >= volumeRounds || !try.along(taken) {
		if try.lp.tooLarge() {
			return stuck
		}
		try.step, try.box = 0, firstBox
		try.smooth = append(try.smooth, try.centre...)
		for at := range try.rent {
			try.rent[at] = 1 / graph.Sum(try.lp.count)
		}
		try.boxed()
	}
	return open
}

// exactly asks, for sure, whether the devices can take what the items are worth
// at the prices: each kind its share, as most has it. Either none has a set that
// is worth more, and the limit is refuted, or there are such sets.
func (try *trial) exactly(ctx context.Context) outcome {
	share := max(1, try.of()) / refutes
	for at, walk := range try.walkers {
		try.most[at] *= share
		sets, done := walk.price(ctx, try.asked, try.limit, try.most[at])
		if !done {
			return stuck
		}
		for _, set := range sets {
			try.most[at] = max(try.most[at], set.worth)
			try.learn(at, set)
		}
	}
	if try.of() > 1+graph.Rounding {
		copy(try.centre, try.asked)
		try.Proof = try.proof()
		return refuted
	}
	return open
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

// learn adds a set to those that cover, if the program gains by it.
func (try *trial) learn(at int, set found) {
	if !set.fits {
		return
	}
	if try.step == 0 {
		worth := try.lp.dual[try.lp.items+at]
		for _, item := range set.items {
			worth += try.lp.dual[item]
		}
		if worth <= 1e-9 {
			return
		}
	}
	try.lp.add(column{items: set.items, kind: at, load: set.load})
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
	outside := lp.outside()
	const little, enough = 1e-3, 1 - 1e-4
	if lp.value() < enough && outside < little {
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
	switch walk := try.walkers[0]; {
	case walk.cells < mostCells:
		for _, walk := range try.walkers {
			walk.cells *= 5
		}
	case outside >= little && try.box < mostBox:
		copy(try.centre, lp.dual)
		try.box *= 2
		try.boxed()
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
