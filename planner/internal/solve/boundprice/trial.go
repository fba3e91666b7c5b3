package boundprice

import (
	"context"
	"math"
)

// trial looks for prices that refute one load. It begins with the volume
// algorithm (Barahona and Anbil, Mathematical Programming 87, 2000), which is
// quick to good prices, and goes on by column generation, whose prices are drawn
// towards the best so far (Wentges, International Transactions in Operational
// Research 4, 1997).
type trial struct {
	*Bound
	limit float64
	// centre are the best prices so far and rent what a device of each kind can
	// take at them, so that all devices take 1; ratio is what all items are
	// worth then.
	centre, rent []float64
	ratio        float64
	rounds       int
	stale        int

	asked, most []float64 // prices of this round, and what devices take
	mean        []float64 // share of each item that the devices took lately
	step        float64   // of the volume algorithm; 0: it is over
	box         float64
	draw        float64
}

// outcome of a round.
type outcome int

const (
	open    outcome = iota
	refuted         // the devices cannot take all items within the limit
	covered         // fractions of sets cover all items
	stuck
)

// What a trial may take. Walks are rough at first: cells and slack are a
// walker's, and grow finer where rough ones do not help.
const (
	volumeRounds = 120
	volumeStale  = 30
	firstCells   = 300
	mostCells    = 40_000
	firstSlack   = 0.003
	mostRounds   = 1500
	firstBox     = 0.1
	mostBox      = 50
)

func newTrial(bound *Bound, limit float64) *trial {
	try := &trial{Bound: bound, limit: limit, centre: append([]float64(nil), bound.prices...), step: 1}
	try.asked = append([]float64(nil), try.centre...)
	try.rent, try.most = make([]float64, len(bound.kinds)), make([]float64, len(bound.kinds))
	for _, walk := range bound.walkers {
		walk.cells, walk.slack = firstCells, firstSlack
	}
	return try
}

// round asks for the dearest sets at one vector of prices.
func (try *trial) round(ctx context.Context) outcome {
	if try.rounds++; try.rounds > mostRounds {
		return stuck
	}
	if try.step > 0 {
		return try.volume(ctx)
	}
	return try.generate(ctx)
}

// judge takes over prices that are better than the best so far.
func (try *trial) judge() (better bool) {
	worth, taken := 0.0, 0.0
	for _, price := range try.asked {
		worth += price
	}
	for at, most := range try.most {
		taken += most * try.lp.count[at]
	}
	ratio := worth / taken
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
	for at, most := range try.most {
		try.rent[at] = most / taken
	}
	return true
}

// refutes is a ratio that rounding does not explain.
const refutes = 1 + 1e-7

// volume makes one step along what the devices have taken too little of.
func (try *trial) volume(ctx context.Context) outcome {
	taken := make([]float64, len(try.asked))
	for at, walk := range try.walkers {
		most, sets, done := walk.price(ctx, try.asked, try.limit, 0, false)
		if !done {
			return open
		}
		try.most[at] = most
		dearest := -1
		for i, set := range sets {
			try.learn(at, set)
			if dearest < 0 || set.worth > sets[dearest].worth {
				dearest = i
			}
		}
		if dearest >= 0 {
			for _, item := range sets[dearest].items {
				taken[item] += try.lp.count[at]
			}
		}
	}
	if try.judge() {
		try.step = min(1.1*try.step, 1.5)
	}
	if try.ratio > refutes {
		return refuted
	}
	if try.stale++; try.stale%10 == 0 {
		try.step *= 0.7
	}
	if try.mean == nil {
		try.mean = taken
	}
	if try.stale >= volumeStale || try.rounds >= volumeRounds || !try.along(taken) {
		try.step, try.box, try.draw = 0, firstBox, 0.5
		try.boxed()
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

func (try *trial) learn(at int, set found) {
	if set.fits {
		try.lp.add(column{items: set.items, kind: at, load: set.load})
	}
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
	for _, draw := range []float64{try.draw, 0} {
		if !try.separate(ctx, draw) {
			return open
		}
		if try.ratio > refutes {
			return refuted
		}
		if len(lp.sets) > before || draw == 0 {
			break
		}
	}
	if len(lp.sets) > before {
		return open
	}
	switch walk := try.walkers[0]; {
	case walk.cells < mostCells:
		for _, walk := range try.walkers {
			walk.cells, walk.slack = 5*walk.cells, walk.slack/5
		}
	case outside >= little && try.box < mostBox:
		try.box *= 3
		try.boxed()
	default:
		return stuck
	}
	return open
}

// separate asks for sets at prices between the program's and the centre's.
// First those that are met by the way will do.
func (try *trial) separate(ctx context.Context, draw float64) bool {
	if try.ratio == 0 {
		draw = 0
	}
	for item := range try.asked {
		try.asked[item] = draw*try.centre[item] + (1-draw)*try.lp.dual[item]
	}
	before := len(try.lp.sets)
	for _, quick := range []bool{true, false} {
		for at, walk := range try.walkers {
			need := max(0, draw*try.rent[at]-(1-draw)*try.lp.dual[try.lp.items+at])
			most, sets, done := walk.price(ctx, try.asked, try.limit, need, quick)
			if !done {
				return false
			}
			try.most[at] = most
			for _, set := range sets {
				worth := try.lp.dual[try.lp.items+at]
				for _, item := range set.items {
					worth += try.lp.dual[item]
				}
				if worth > 1e-9 {
					try.learn(at, set)
				}
			}
		}
		try.judge()
		if len(try.lp.sets) > before || try.ratio > refutes {
			break
		}
	}
	return true
}
