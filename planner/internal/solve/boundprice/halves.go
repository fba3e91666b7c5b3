package boundprice

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Halves is two like devices. What crosses between them both pay, so that the one
// of more time is the busier: a set of half of all times or more, which a device
// can take within a load, is an answer with what it leaves, unless that has too
// many bytes. So prices that are the times, or times and bytes where capacities
// bind, tell all that there is to know, and no program has to find them: one
// walk finds a better answer or refutes that there is one, or tells the load below
// which there is none as far as its labels tell sets apart.
type Halves struct {
	*Bound
	kind int
	// plain passes over the capacity, sized keeps it.
	plain, sized *walker
	// fine is how many labels there are about, of all states; Labels were made so far.
	fine, Labels int
}

// NewHalves is nil where there are not two devices of one kind, or the context
// ends. Answers of the largest load known and more will not be looked for: what a
// set of half of all times cuts is less than that load is above the half.
func NewHalves(ctx context.Context, nets *netlist.Netlist, largest float64) *Halves {
	halves := &Halves{kind: -1, Bound: &Bound{Netlist: nets, step: nets.Problem.Step(), width: wide}, fine: coarse}
	for kind, count := range nets.Count {
		switch {
		case count == 2 && halves.kind < 0:
			halves.kind = kind
		case count > 0:
			return nil
		default:
		}
	}
	if halves.kind < 0 || !halves.layOut(ctx, largest) {
		return nil
	}
	return halves
}

// layOut makes the walks for loads below the largest; false where the context ends.
func (halves *Halves) layOut(ctx context.Context, largest float64) bool {
	cut := largest - halves.whole()/2
	frontier := halves.NewFrontier(ctx, !halves.Free[halves.kind], halves.width, netlist.Budget{Most: cut + graph.Rounding*largest})
	if frontier == nil {
		return false
	}
	halves.largest, halves.kinds, halves.sized = largest, []int{halves.kind}, nil
	halves.plain = newWalker(frontier, halves.Time[halves.kind], halves.Size, math.Inf(1))
	halves.walkers = []*walker{halves.plain}
	if room := halves.Capacity[halves.kind]; graph.Sum(halves.Size) > room {
		halves.sized = newWalker(frontier, halves.Time[halves.kind], halves.Size, room)
	}
	return true
}

// wide is for few walks, and widest what Finer comes to; coarse is how many labels a walk
// has at first, finest in the end, and finer how many times as many each time.
var (
	wide   = netlist.Width{Step: 20_000, All: 400_000}
	widest = 8 * wide.All
)

const (
	coarse = 2_000_000
	finest = 128_000_000
	finer  = 4
)

// Finer makes the walks tell more sets apart, those that leave wires out wider, or tells
// that they are as fine as they become.
func (halves *Halves) Finer() bool {
	if frontier := halves.plain.Frontier; len(frontier.Left)+len(frontier.Short) > 0 && halves.width.All < widest {
		halves.width.Step *= finer
		halves.width.All *= finer
		halves.largest = math.Inf(1) // they are laid out anew
	}
	halves.fine *= finer
	return halves.fine <= finest
}

// Below looks for an answer of less load than the one known. It returns one, or
// the proof that there is none below a load, that of the answer where it can, or neither
// where the walks become too long. Where answers fell, fewer states are within them, and
// walks are laid out anew.
func (halves *Halves) Below(ctx context.Context, known []int32) (place []int32, proof *boundcheck.Proof) {
	loads := [2]float64{}
	sides := halves.sidesOf(known)
	for i := range sides {
		loads[i] = halves.loadOf(0, sides[i])
	}
	largest := max(loads[0], loads[1])
	limit := halves.least(largest)
	if halves.whole() < netlist.MinLoad || limit < netlist.MinLoad {
		return nil, nil
	}
	if largest < halves.largest && !halves.layOut(ctx, largest) {
		return nil, nil
	}
	for _, try := range halves.attempts(limit, (loads[0]+loads[1]-halves.whole())/2) {
		place, refuted := halves.ask(ctx, try, limit)
		if place != nil || ctx.Err() != nil {
			return place, nil
		}
		if refuted > 0 && (proof == nil || refuted > proof.Limit) {
			proof = halves.proof(try, refuted)
		}
		if refuted >= limit {
			break
		}
	}
	return nil, proof
}

// Closed tells that a load which is refuted leaves nothing below the last answer known.
func (halves *Halves) Closed(refuted float64) bool { return halves.Closes(refuted, halves.largest) }

// sidesOf are the items of the two devices.
func (halves *Halves) sidesOf(place []int32) (sides [2][]int32) {
	for item, device := range place {
		at := int(device) - halves.First[halves.kind]
		sides[at] = append(sides[at], int32(item))
	}
	return sides
}

// whole is the time of all items.
func (halves *Halves) whole() float64 { return graph.Sum(halves.Time[halves.kind]) }

// attempt is one vector of prices, a unit for time and some for bytes, and the
// walker that looks for a set of half of what all is worth.
type attempt struct {
	*walker
	perByte float64
}

// attempts are by times alone, without the capacity and with it, then by bytes
// too. With a cut of cost c, time has limit − c − T/2 to spare on each side of
// the half, bytes C − S/2: at the quotient as the price of a byte, a set of
// half the worth within limit and capacity leaves no more than they are.
func (halves *Halves) attempts(limit, cut float64) []attempt {
	all := []attempt{{walker: halves.plain}}
	if halves.sized == nil {
		return all
	}
	all = append(all, attempt{walker: halves.sized})
	spare := halves.sized.room - graph.Sum(halves.Size)/2
	for _, part := range []float64{1, 0.5, 0} {
		if time := limit - cut*part - halves.whole()/2; time > 0 && spare > 0 {
			all = append(all, attempt{halves.sized, time / spare})
		}
	}
	return all
}

// prices are those of an attempt.
func (halves *Halves) prices(try attempt) []float64 {
	prices := make([]float64, len(halves.Nodes))
	for item := range prices {
		prices[item] = halves.Time[halves.kind][item] + try.perByte*halves.Size[item]
	}
	return prices
}

// rent is what a set must be worth more than to be looked at: a little less than
// half, for rounding.
func (halves *Halves) rent(prices []float64) float64 { return graph.Sum(prices) / 2 / refutes }

// ask returns the best answer among the sets that a walk finds, or the load of the limit
// or less that it refutes, 0 where it is too long.
func (halves *Halves) ask(ctx context.Context, try attempt, limit float64) (place []int32, refuted float64) {
	prices := halves.prices(try)
	rent := halves.rent(prices)
	try.cells, try.hand, try.longest = max(1, halves.fine/try.total), manyHanded, 4*halves.fine
	try.bare, try.priced = true, false
	least, sets := try.relax(try.walker, prices, limit)
	if least <= rent {
		return nil, limit
	}
	before := try.made
	ends, done := try.labelled(ctx, prices, limit, rent, math.MaxInt)
	halves.Labels += try.made - before
	lowest := limit
	for _, set := range append(sets, ends...) {
		if load, fits := halves.judge(set.items); fits && load <= lowest {
			lowest, place = load, halves.placed(set.items)
		}
	}
	if !done {
		return place, 0
	}
	return place, min(limit, try.lowest(rent)*(1-graph.Rounding))
}

// lowest is the load below which none of the last labels is worth a rent: no set is.
func (walk *walker) lowest(rent float64) float64 {
	lowest := math.Inf(1)
	for _, one := range walk.labels {
		if one.worth <= rent {
			continue
		}
		load := one.load
		if walk.lambda > 0 {
			load = max(load, (rent-one.gain-walk.ofRoom(walk.mu))/walk.lambda)
		}
		lowest = min(lowest, load)
	}
	return lowest
}

// manyHanded is how many sets are looked at: most may leave too many bytes.
const manyHanded = 1000

// judge is the larger load of a set and of what it leaves.
func (halves *Halves) judge(items []int32) (load float64, fits bool) {
	sides := halves.sidesOf(halves.placed(items))
	fits = true
	for _, side := range sides {
		load = max(load, halves.loadOf(0, side))
		bytes := 0.0
		for _, item := range side {
			bytes += halves.Size[item]
		}
		fits = fits && bytes <= halves.Capacity[halves.kind]
	}
	return load, fits
}

func (halves *Halves) placed(items []int32) []int32 {
	place := make([]int32, len(halves.Nodes))
	for item := range place {
		place[item] = int32(halves.First[halves.kind]) + 1
	}
	for _, item := range items {
		place[item]--
	}
	return place
}
