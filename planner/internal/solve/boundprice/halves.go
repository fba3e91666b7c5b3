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
// walk finds a better answer or refutes that there is one.
type Halves struct {
	*Bound
	kind int
	// plain passes over the capacity, sized keeps it.
	plain, sized *walker
}

// NewHalves is nil where there are not two devices of one kind, or the context
// ends. Answers of the largest load known and more will not be looked for: what a
// set of half of all times cuts is less than that load is above the half.
func NewHalves(ctx context.Context, nets *netlist.Netlist, largest float64) *Halves {
	halves := &Halves{kind: -1, Bound: &Bound{Netlist: nets, step: nets.Problem.Step()}}
	for kind, count := range nets.Count {
		switch {
		case count == 2 && halves.kind < 0:
			halves.kind = kind
		case count > 0:
			return nil
		default:
		}
	}
	if halves.kind < 0 {
		return nil
	}
	cut := largest - halves.whole()/2
	frontier := nets.NewFrontier(ctx, !nets.Free[halves.kind], wide, netlist.Budget{Most: cut + graph.Rounding*largest})
	if frontier == nil {
		return nil
	}
	halves.kinds = []int{halves.kind}
	halves.plain = newWalker(frontier, nets.Time[halves.kind], nets.Size, math.Inf(1))
	halves.walkers = []*walker{halves.plain}
	if room := nets.Capacity[halves.kind]; graph.Sum(nets.Size) > room {
		halves.sized = newWalker(frontier, nets.Time[halves.kind], nets.Size, room)
	}
	return halves
}

// wide is for few walks.
var wide = netlist.Width{Step: 20_000, All: 400_000}

// Below looks for an answer of less load than the one known. It returns one, or
// the proof that there is none, or neither where the walks become too long.
func (halves *Halves) Below(ctx context.Context, known []int32) (place []int32, proof *boundcheck.Proof) {
	loads := [2]float64{}
	sides := halves.sidesOf(known)
	for i := range sides {
		loads[i] = halves.loadOf(0, sides[i])
	}
	limit := halves.least(max(loads[0], loads[1]))
	if halves.whole() < netlist.MinLoad || limit < netlist.MinLoad {
		return nil, nil
	}
	for _, try := range halves.attempts(limit, (loads[0]+loads[1]-halves.whole())/2) {
		place, refuted := halves.ask(ctx, try, limit)
		if place != nil || ctx.Err() != nil {
			return place, nil
		}
		if refuted {
			return nil, halves.proof(try, limit)
		}
	}
	return nil, nil
}

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

// ask returns the best answer among the sets that a walk finds, or whether it
// finds surely none.
func (halves *Halves) ask(ctx context.Context, try attempt, limit float64) (place []int32, refuted bool) {
	prices := halves.prices(try)
	rent := halves.rent(prices)
	try.cells, try.hand = math.MaxInt, manyHanded
	least, sets := try.relax(try.walker, prices, limit)
	if least <= rent {
		return nil, true
	}
	ends, done := try.labelled(ctx, prices, limit, rent, math.MaxInt)
	lowest := limit
	for _, set := range append(sets, ends...) {
		if load, fits := halves.judge(set.items); fits && load <= lowest {
			lowest, place = load, halves.placed(set.items)
		}
	}
	return place, done && len(ends) == 0
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
