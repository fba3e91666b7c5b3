package boundprice

import "context"

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
	try.rounds++
	if try.rounds > mostRounds || try.work() > try.until {
		return stuck
	}
	if try.step > 0 {
		return try.volume(ctx)
	}
	return try.generate(ctx)
}

// refutes is a ratio that rounding does not explain.
const refutes = 1 + 1e-7

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
