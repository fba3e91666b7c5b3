// Package stagesearch looks for contiguous placements of wide graphs by local
// search: items move between devices that stand in a row, every edge within a
// device or to a later one, as in Moreira, Popp and Schulz, "Evolutionary
// multi-level acyclic graph partitioning" (GECCO 2018), whose moves are these;
// here the largest load is minimised, within capacities.
package stagesearch

import (
	"context"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Search is one search, round after round, of one goroutine. The same rounds
// give the same placements.
type Search struct {
	*annealer
	rounds int
	part   *parter
	ways   ways
	// rate is how many steps a second were made in the latest round.
	rate float64
}

// New begins a search. Streams of one seed differ.
func New(chain *Chain, seed, stream uint64) *Search {
	search := &Search{annealer: newAnnealer(chain, seed, stream), ways: ways{taken: map[int]int{}}}
	search.swaps = fewSwaps
	if graph.Sum(chain.size) > tight*graph.Sum(chain.capacity) {
		search.swaps = manySwaps
	}
	return search
}

// Where sizes fill more than this part of the capacities, an item often has to
// come for one to go.
const (
	tight               = 0.8
	fewSwaps, manySwaps = 2, 8
)

// Start takes a placement from which the next round may go on, the devices
// numbered as in the problem. It must keep the order; where it does not keep
// the capacities either, the search first looks for one that does.
func (search *Search) Start(place []int) {
	search.set(place)
	search.refresh()
}

// set takes a placement, the devices numbered as in the problem.
func (search *Search) set(place []int) {
	number := make(map[int]int32, search.devices)
	for device, of := range search.number {
		number[of] = int32(device)
	}
	for item, device := range place {
		search.place[item] = number[device]
	}
}

// Learn takes a placement as the best where it is that, and goes on as before.
func (search *Search) Learn(place []int) {
	own := slices.Clone(search.place)
	search.Start(place)
	search.keep()
	copy(search.place, own)
	search.refresh()
}

// The rounds.
const (
	roundSteps = 2000 // of the shortest, for each item
	// startRate is the guess of steps a second, for the first round.
	startRate  = 500_000
	leastSteps = 10_000
	// manyItems are too many to begin anew: every round goes on from the best.
	manyItems = 4000
)

const (
	// cold is the temperature at the end, as a part of the load. warm is not hot enough
	// to forget what it begins with.
	warm, cold = 0.004, 0.00001
	// corridorWork is what is done in corridors for each step of a round: it is so
	// much cheaper.
	corridorWork = 8
	// aim is the part of the best load that counts as 1: loads above stand out.
	aim = 0.97
)

// Round searches in one way, for some steps. While no placement keeps the capacities,
// it looks for one that does and ends there.
func (search *Search) Round(ctx context.Context) {
	way, length := search.ways.next()
	search.rounds++
	search.unit, search.blind = search.bestLoad*aim, !search.found()
	switch {
	case search.blind:
		way = blind(search.rounds)
	case search.items > manyItems:
		way.how, way.hot = anew, min(way.hot, warm)
	default:
	}
	if search.blind || !(search.unit > 0) {
		search.unit = 1
	}
	before, steps, began := search.bestLoad, search.steps(ctx, length), time.Now()
	if way.how == kicked {
		search.kick(ctx, steps, way)
	} else {
		search.cool(ctx, steps, way)
	}
	search.ways.told(search.bestLoad < before)
	search.rate = float64(steps) / max(time.Since(began).Seconds(), 1e-6)
}

// cool makes one run of annealing, and goes on from its end to what is better near it.
func (search *Search) cool(ctx context.Context, steps int, way way) {
	if way.how == anew {
		copy(search.place, search.best)
	}
	search.run(ctx, steps, way.power, way.hot, cold)
	if search.found() {
		search.improve(ctx, corridorWork*steps)
	}
}

// steps are those of a round: no more than half of the time is for, as one that
// is cut short ends hot.
func (search *Search) steps(ctx context.Context, length int) int {
	steps := roundSteps * search.items * length
	if end, timed := ctx.Deadline(); timed {
		rate := search.rate
		if rate == 0 {
			rate = startRate
		}
		steps = min(steps, max(leastSteps, int(rate*time.Until(end).Seconds()/2)))
	}
	return steps
}

// Best is the best placement so far, nil where none keeps the capacities, and
// its largest load as the search sums it.
func (search *Search) Best() (place []int, largest float64) {
	if !search.found() {
		return nil, search.bestLoad
	}
	place = make([]int, search.items)
	for item, device := range search.best {
		place[item] = search.number[device]
	}
	return place, search.bestLoad * (1 - graph.Rounding)
}
