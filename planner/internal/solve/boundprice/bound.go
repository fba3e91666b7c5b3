// Package boundprice bounds the largest load by prices on the items: where all
// devices together cannot take what all items are worth within a load, no
// assignment has it. The best prices solve the dual of the linear program that
// covers the items by sets that one device could take (Gilmore and Gomory,
// Operations Research 9, 1961), here by column generation (master.go); the
// dearest set at given prices is found by dynamic programming along a thin order
// of the hypergraph (walk.go). The bound holds for contiguous parts too. Two like
// devices need no program, but one walk (halves.go).
package boundprice

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Bound raises a lower bound on the largest load by trials: at one load after
// the other it looks for prices at which the devices cannot take all, or for
// fractions of sets that cover all, so that there are no such prices.
type Bound struct {
	*netlist.Netlist
	// Value is what no assignment is below, and Proof why; it is nil for a value
	// that Raise was told.
	Value   float64
	Proof   *boundcheck.Proof
	largest float64 // that the walks are laid out for
	// width is what the walks may take, lost what the wires cost of which something is
	// left out for it; hard: a trial was lost by walks of this width.
	width netlist.Width
	lost  float64
	hard  bool
	// own is the highest load that trials refute, or below which they are too hard.
	own float64
	// kinds are those in use, walkers find their dearest sets.
	kinds   []int
	walkers []*walker
	lp      *master
	// reach is the least load known at which fractions of sets cover all items:
	// prices prove nothing above it.
	reach float64
	// tough is the least load at which a trial of so much patience, in steps of
	// work, came to no end.
	tough    float64
	patience int
	// stride is how far above Value the next trial is at most: answers are far
	// from the bound at first.
	stride float64
	// step is what all loads are multiples of; 0: of nothing that is known.
	step float64
	// scale is what an item's price may differ by, prices are the best so far.
	scale, prices []float64
	trial         *trial
	// failed are the last prices of a trial that came to no end.
	failed            [][]float64
	rounds, projected int // of all trials, and the work of their projections
	// staged: each device is a stage of its own.
	staged bool
}

// New begins with each item at its least time. No load above the largest known
// will be asked for. It is nil where the context ends.
func New(ctx context.Context, nets *netlist.Netlist, largest float64) *Bound {
	return newWithin(ctx, nets, largest, netlist.Narrow)
}

func newWithin(ctx context.Context, nets *netlist.Netlist, largest float64, width netlist.Width) *Bound {
	bound := newBound(nets)
	bound.largest, bound.width = largest, width
	var count []float64
	for kind, devices := range nets.Count {
		if devices == 0 {
			continue
		}
		frontier := nets.NewFrontier(ctx, !nets.Free[kind], width, netlist.Budget{Most: largest * (1 + graph.Rounding), Items: nets.Time[kind]})
		if frontier == nil {
			return nil
		}
		bound.walks(kind, frontier)
		if !nets.Free[kind] {
			bound.lost = max(bound.lost, lostBy(nets, frontier))
		}
		count = append(count, float64(devices))
	}
	bound.lp = newMaster(len(nets.Nodes), count)
	bound.firstPrices()
	return bound
}

func newBound(nets *netlist.Netlist) *Bound {
	const patience, stride = 500_000_000, 0.02
	return &Bound{Netlist: nets, reach: math.Inf(1), tough: math.Inf(1), patience: patience, stride: stride, step: nets.Problem.Step()}
}

// walks adds devices of a kind that choose their sets along a frontier.
func (bound *Bound) walks(kind int, frontier *netlist.Frontier) {
	room := bound.Capacity[kind]
	if graph.Sum(bound.Size) <= room {
		room = math.Inf(1)
	}
	bound.kinds = append(bound.kinds, kind)
	bound.walkers = append(bound.walkers, newWalker(frontier, bound.Time[kind], bound.Size, room))
	bound.share(bound.walkers[0].tables)
}

// share has all walkers use the same memory for tails.
func (bound *Bound) share(memory *tables) {
	for _, walk := range bound.walkers {
		walk.tables = memory
	}
}

// firstPrices are the items' least times.
func (bound *Bound) firstPrices() {
	total := 0.0
	for item := range bound.Nodes {
		price := math.Inf(1)
		for _, kind := range bound.kinds {
			price = min(price, bound.Time[kind][item])
		}
		differs := price
		for _, wire := range bound.WiresOf[item] {
			differs += bound.Wires[wire].Cost
		}
		bound.prices = append(bound.prices, price)
		bound.scale = append(bound.scale, differs)
		total += price
	}
	total = max(total, netlist.MinLoad)
	for item := range bound.prices {
		bound.prices[item] /= total
		bound.scale[item] = bound.scale[item]/total + 1e-4/float64(len(bound.prices))
	}
}

// Know adds the sets of an assignment to those that cover.
func (bound *Bound) Know(device []int32) {
	for at, kind := range bound.kinds {
		for number := range int32(bound.Count[kind]) {
			var items []int32
			for item, here := range device {
				if here == int32(bound.First[kind])+number {
					items = append(items, int32(item))
				}
			}
			if items != nil {
				bound.lp.add(column{items: items, kind: at, load: bound.loadOf(at, items)})
			}
		}
	}
}

// loadOf is what a device of a kind in use has to do for a set.
func (bound *Bound) loadOf(at int, items []int32) float64 {
	load, held := 0.0, make(map[int32]int)
	for _, item := range items {
		load += bound.Time[bound.kinds[at]][item]
		for _, wire := range bound.WiresOf[item] {
			held[wire]++
		}
	}
	if bound.Free[bound.kinds[at]] {
		return load
	}
	for wire, count := range held {
		if count < len(bound.Wires[wire].Members) {
			load += bound.Wires[wire].Cost
		}
	}
	return load
}

// Raise takes a bound that something else has proved. Trials begin below it all
// the same, as prices that refute low loads are found at once, and are where those
// of higher loads are near.
func (bound *Bound) Raise(value float64) { bound.Value = max(bound.Value, value) }

// Done says that prices on single items prove no more below the largest load
// known.
func (bound *Bound) Done(largest float64) bool {
	return bound.Closes(bound.Value, largest) || bound.near(bound.reach) && !bound.widens(largest)
}

// Closes says that what is above a limit, and below the largest load known, is no
// load: it is the least.
func (bound *Bound) Closes(limit, largest float64) bool {
	return limit >= bound.least(largest)*(1-graph.Rounding)
}

// least is what must be refuted for the largest load known to be the least.
func (bound *Bound) least(largest float64) float64 {
	const enough = 0.75 // of a step: the next load below is a whole one away
	return min(largest*(1-graph.Rounding), largest-enough*bound.step)
}

// near says that Value is as good as a load.
func (bound *Bound) near(load float64) bool {
	const near = 1 - 5e-4
	return bound.Value >= load*near
}

// Improve makes trials at loads up to the largest known, until the work, in
// steps of about a nanosecond, is done, or the context ends.
func (bound *Bound) Improve(ctx context.Context, largest float64, work int) {
	if largest < netlist.MinLoad {
		return
	}
	for until := bound.work() + work; bound.work() < until && ctx.Err() == nil && !bound.Done(largest) && !bound.tooNarrow(largest); {
		if bound.trial == nil || bound.trial.limit > largest {
			bound.begin(largest)
		}
		bound.rounds++
		end := bound.trial.round(ctx)
		switch {
		case ctx.Err() != nil || end == open:
			continue
		case end == refuted:
			if bound.trial.rounds <= quick {
				bound.stride = min(bound.stride*1.5, mostStride)
			}
			bound.trial.lift(bound.trial.limit)
		case end == covered:
			bound.reach, bound.hard = min(bound.reach, bound.trial.limit), true
			bound.trial.fail()
		default:
			bound.tough, bound.hard = min(bound.tough, bound.trial.limit), true
			bound.stride = max(bound.stride/4, leastStride)
			bound.trial.fail()
			bound.own = bound.Value
		}
		bound.trial = nil
	}
}

// lift takes over a load that the centre's prices refute.
func (try *trial) lift(limit float64) {
	try.own = max(try.own, limit*(1-graph.Rounding))
	try.Value = max(try.Value, try.own)
	copy(try.prices, try.centre)
	try.failed = nil
}

// Strides: the least that is worth a trial, and what a trial may hope for at once. They
// grow where it took no more than quick rounds.
const leastStride, mostStride, quick = 0.003, 0.03, 10

// begin chooses the load of the next trial, half way to what may be reached.
// What was too tough is tried again, with twice the work, when nearly all below it
// is done.
func (bound *Bound) begin(largest float64) {
	top := min(largest, bound.reach)
	const nearly = 0.1 // of what there is to prove
	if bound.near(bound.tough) || bound.tough < netlist.MinLoad || bound.tough-bound.own < nearly*(top-bound.own) {
		bound.tough, bound.patience = math.Inf(1), 2*bound.patience
	}
	limit := min((bound.own+min(top, bound.tough))/2, max(bound.own*(1+bound.stride), netlist.MinLoad))
	if bound.own <= 0 {
		limit = min(top, bound.tough) / 2
	}
	if bound.near(top) && top == largest {
		limit = bound.least(largest)
	}
	bound.lp.limit(limit)
	bound.trial = newTrial(bound, limit, bound.patience)
}

// work counts labels and the entries of pivots.
func (bound *Bound) work() int {
	const ofLabel, ofTail, ofRound = 20, 8, 20_000
	total := bound.rounds*ofRound + bound.projected + bound.lp.pivots*bound.lp.rows*bound.lp.rows
	for _, walk := range bound.walkers {
		total += walk.made*ofLabel + walk.tailed*ofTail + walk.swept
	}
	return total
}
