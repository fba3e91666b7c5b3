package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// finder looks for better assignments from the best that it knows, in one goroutine.
type finder struct {
	*annealer
	split *splitter
	ways  ways
	steps int // of one run of annealing
	// rounds are made from random places first, so many.
	rounds, first int
	// at is the best assignment known, value its largest load, lower what none is below
	// and method how it was found.
	at           []int32
	value, lower float64
	method       string
	pool         pool
	base         int // the member of it that a round goes on from, or nobody
	runs         int // of a few devices placed anew
	walks        int // of corridors
	vain         int // rounds since the best was found
}

// patience is how many rounds in vain show that a search from the best stands still.
const patience = 12

// newFinder begins at random places. Streams of one seed differ.
func (call *anywhere) newFinder(split *splitter, stream uint64) *finder {
	random := rand.New(rand.NewPCG(call.Settings.Seed, stream))
	anneal := newAnnealer(newPlacement(call.Netlist, scatter(call.Netlist, random)), random)
	return &finder{
		annealer: anneal, split: split, ways: ways{list: allWays(call.Problem.Devices())},
		steps: call.steps, first: annealRuns, value: math.Inf(1), base: nobody,
	}
}

// know tells the best assignment, none where there is none, and a bound.
func (find *finder) know(place []int32, value, lower float64) {
	if find.lower = max(find.lower, lower); value < find.value {
		find.at, find.value = append(find.at[:0], place...), value
		find.pool.offer(nobody, place, value)
	}
}

// over tells that there is nothing left to do, or no time.
func (find *finder) over(ctx context.Context) bool {
	return ctx.Err() != nil || find.value*(1-4*graph.Rounding) <= find.lower
}

// usual is a load like that of good answers.
func (find *finder) usual() float64 {
	switch {
	case find.at != nil:
		return find.value
	case find.lower > 0:
		return find.lower
	default:
		return 1
	}
}

// round searches: from random places at first, then in all ways in turn, one again
// where it found something better.
func (find *finder) round(ctx context.Context) {
	round, before := find.rounds, find.value
	find.rounds++
	defer func() {
		find.vain++
		if find.value < before {
			find.vain = 0
		}
	}()
	if round < find.first || find.at == nil {
		find.scattered(ctx, round)
		return
	}
	find.base = find.pool.pick(find.rng, find.vain > patience)
	from := find.pool[find.base]
	switch way := find.ways.next(); way.how {
	case byScatter:
		find.scattered(ctx, round)
		if find.found() {
			find.anew(ctx, slices.Clone(find.best), find.bestLoad, anewWork)
		}
	case byCooling:
		find.onwards(ctx, from.place, from.value, find.steps*find.ways.longer(), way)
		find.polish(ctx, "simulated annealing, cooled slowly from a good answer")
	case byRegions:
		find.regions(ctx, from)
	case byAnew:
		find.anew(ctx, from.place, from.value, anewWork)
	case byCorridor:
		find.corridor(ctx, from)
	case byJoins:
		find.join(ctx)
	default:
		find.kick(ctx, from)
	}
	find.ways.told(find.value < before || find.base != nobody && find.pool[find.base].value < from.value)
}

// onwards cools from what there is, of a load that is to be less.
func (find *finder) onwards(ctx context.Context, place []int32, value float64, steps int, way way) {
	find.refresh(place)
	find.forget()
	find.known = value
	find.cool(ctx, value, steps, way)
	find.known = math.Inf(1)
}

// scattered cools from random places, from unlike heats in turn: which suits a problem is
// not known before.
func (find *finder) scattered(ctx context.Context, run int) {
	starts := [...]way{
		{byScatter, low, 0.2, false},
		{byScatter, lowest, 0.75, true},
		{byScatter, low, 0.06, false},
		{byScatter, lowest, 0.015, false},
		{byScatter, low, 1, false},
	}
	find.base = nobody
	find.refresh(scatter(find.Netlist, find.rng))
	find.forget()
	find.cool(ctx, find.usual(), find.steps, starts[run%len(starts)])
	find.polish(ctx, "simulated annealing")
}

// from starts at an assignment that something else has found.
func (find *finder) from(ctx context.Context, place []int32, method string) {
	find.base, find.unit = nobody, find.usual()
	find.refresh(place)
	find.note()
	find.polish(ctx, method)
}

// polish splits pairs of the annealer's best answer anew, and keeps it.
func (find *finder) polish(ctx context.Context, method string) {
	if find.found() {
		find.refresh(find.best)
	}
	find.split.polish(ctx, find.annealer)
	if find.found() && find.bestLoad <= find.value*(1+finePart) {
		find.fine(ctx)
	}
	find.keep(method + ", and pairs of devices divided anew")
}

// finePart is how far an answer may be above the best for its pairs to be divided finely,
// and fineLabels is how many labels that may take.
const finePart, fineLabels = 0.002, 4_000_000

// fine divides pairs in finer cells than usual, and so that the busier of two counts.
func (find *finder) fine(ctx context.Context) {
	copy(find.place, find.best)
	find.squarings = steep
	find.refresh(find.place)
	find.split.finely(fineLabels, func() { find.split.polish(ctx, find.annealer) })
}

// keep takes the annealer's best answer where it is better.
func (find *finder) keep(method string) {
	if find.found() {
		find.pool.offer(find.base, find.best, find.bestLoad)
	}
	if find.found() && find.bestLoad < find.value*(1-1e-12) {
		find.at, find.value = append(find.at[:0], find.best...), find.bestLoad
		find.method = method + ": any assignment is allowed, too many to try all"
	}
}

// kick shakes an answer a little, lets it settle, and goes on from there if it
// is nearly as good (iterated local search).
func (find *finder) kick(ctx context.Context, from member) {
	at, load := slices.Clone(from.place), from.value
	stop, steps := find.split.Work+kickWork, kickSteps*min(len(find.Nodes), maxItems)
	for range kicks {
		if find.over(ctx) || find.split.Work > stop {
			return
		}
		find.unit = load
		find.squarings = 2 + find.rng.IntN(4)
		hot := [...]float64{0.002, 0.02}[find.rng.IntN(2)]
		copy(find.place, at)
		find.refresh(find.place)
		for range steps / 4 {
			find.step(find.warmth(hot))
		}
		find.forget()
		find.run(ctx, steps, hot, 0.0001)
		find.polish(ctx, "iterated local search")
		if find.found() && find.bestLoad <= load*(1+0.002*find.rng.Float64()) {
			load = find.bestLoad
			copy(at, find.best)
		}
	}
}
