package boundprice

import (
	"context"
	"slices"
)

// trial looks for prices that refute one load. It begins with a bundle method
// (level.go), which is quick to prices that are near the best, and goes on by column
// generation, at prices that follow the program's slowly (Neame, "Nonsmooth dual
// methods in integer programming", 1999).
type trial struct {
	*Bound
	limit float64
	// centre are the best prices so far, and rent the rents, at which all devices take 1,
	// as far as is known; ratio is what all items are worth then.
	centre, rent []float64
	ratio        float64
	// asked are the prices of this round, most what a device of each kind takes.
	asked, most   []float64
	bundle        *bundle
	beyond        float64 // 1, by the sets known, are the next prices worth
	rounds, stale int
	// until is the work at which it ends, where it cannot be gone on with later and for
	// the linear program, which has as much again; else it is stale at some time.
	until, patience int
	// smooth are the prices asked for last by the linear program; nil before it.
	smooth []float64
	box    float64
}

// outcome of a round.
type outcome int

const (
	open    outcome = iota
	refuted         // the devices cannot take all items within the limit
	covered         // fractions of sets cover all items
	stuck
)

// What a trial may take. Walks join labels in cells, which grow finer where that does not
// help.
const (
	mostRounds = 1500
	mostCells  = 40_000
	firstBox   = 0.1
	smoothing  = 0.6
	mostBox    = 50
)

func newTrial(bound *Bound, limit float64, work int) *trial {
	try := &trial{Bound: bound, limit: limit, until: bound.work() + work, patience: work, centre: slices.Clone(bound.prices)}
	try.asked = make([]float64, len(try.centre))
	try.rent, try.most = make([]float64, len(bound.kinds)), make([]float64, len(bound.kinds))
	for _, walk := range bound.walkers {
		walk.cells, walk.joined = walk.fine(), 1
	}
	return try
}

// round asks for the dearest sets at one vector of prices.
func (try *trial) round(ctx context.Context) outcome {
	try.rounds++
	if try.rounds > mostRounds || (try.staged || try.smooth != nil) && try.work() > try.until {
		return stuck
	}
	switch {
	case try.bundle == nil:
		return try.start(ctx)
	case try.smooth == nil:
		return try.level(ctx)
	default:
		return try.generate(ctx)
	}
}

// refutes is a ratio that rounding does not explain.
const refutes = 1 + 1e-7

// learn adds a set to those known, and to those that cover if the program gains by it.
func (try *trial) learn(at int, set found) {
	known := column{items: set.items, kind: at, load: set.load}
	if try.bundle != nil && try.smooth == nil {
		try.bundle.add(known)
	}
	if !set.fits {
		return
	}
	if try.smooth != nil {
		worth := try.lp.dual[try.lp.items+at]
		for _, item := range set.items {
			worth += try.lp.dual[item]
		}
		if worth <= 1e-9 {
			return
		}
	}
	try.lp.add(known)
}

// fail keeps the prices that a trial without a result came to: at lower loads they are
// often the best.
func (try *trial) fail() { try.failed = [][]float64{try.centre, try.asked} }
