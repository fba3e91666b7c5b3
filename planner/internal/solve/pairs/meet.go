package pairs

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Meet finds a way to divide a pair that makes the larger load less than the limit, as
// small as it can: labels from both ends meet half way, as in Horowitz and Sahni's search
// (J. ACM 21, 1974). So many at a state tell as many sums apart as their square from one
// end would; what is lost is what labels of the same cell lose. It returns the sides of
// the items, true for the first device, and the loads; none where it finds nothing.
func (divide *Divider) Meet(
	ctx context.Context, frontier *netlist.Frontier, pair *Pair, cells Cells,
) (sides []bool, loads Label) {
	most, middle := cells.of(frontier), middleOf(frontier)
	divide.lookAhead(frontier, pair)
	divide.lookBack(frontier, pair)
	if !divide.forward(ctx, frontier, pair, middle, most) {
		return nil, loads
	}
	ahead, start := divide.labels, divide.start
	divide.labels, divide.start = divide.other, divide.otherStart
	divide.other, divide.otherStart = ahead, start
	if !divide.backward(ctx, frontier, pair, middle, most) {
		return nil, loads
	}
	meet := meeting{Divider: divide, pair: pair, best: math.Inf(1)}
	meet.space = newSpace(frontier.Order, pair)
	for state := range len(divide.start) - 1 {
		meet.at(state)
	}
	if math.IsInf(meet.best, 1) {
		return nil, loads
	}
	sides = divide.Sides(int(meet.one), middle)
	for i, label := middle, meet.two; i < len(frontier.Order); i++ {
		from := divide.trace[i][label]
		sides, label = append(sides, from&1 == 1), from>>1
	}
	return sides, meet.loads
}

// middleOf is the step before which half of all states are.
func middleOf(frontier *netlist.Frontier) (step int) {
	all, before := 0, 0
	for _, states := range frontier.States {
		all += states
	}
	for step < len(frontier.States) && 2*before < all {
		before += frontier.States[step]
		step++
	}
	return step
}

// lookBack is what both loads come to at least at each state before a step.
func (divide *Divider) lookBack(frontier *netlist.Frontier, pair *Pair) {
	for len(divide.past) <= len(frontier.Order) {
		divide.past = append(divide.past, nil)
	}
	divide.past[0] = append(divide.past[0][:0], pair.One.Load+pair.Two.Load)
	for step, item := range frontier.Order {
		next := divide.past[step+1][:0]
		for range frontier.States[step] {
			next = append(next, math.Inf(1))
		}
		for state, arcs := range frontier.Arcs[step] {
			for choice, arc := range arcs {
				if arc.To != netlist.Nowhere {
					here, there := pair.adds(item, choice, arc)
					next[arc.To] = min(next[arc.To], divide.past[step][state]+here+there)
				}
			}
		}
		divide.past[step+1] = next
	}
}

// backward makes the labels of the steps from one on: of what is still to come at a state
// before it; false where the context ends.
func (divide *Divider) backward(ctx context.Context, frontier *netlist.Frontier, pair *Pair, to, most int) bool {
	space := newSpace(frontier.Order, pair).rear()
	divide.labels = append(divide.labels[:0], Label{})
	divide.start = append(divide.start[:0], 0, 1)
	for i := len(frontier.Order) - 1; i >= to; i-- {
		if ctx.Err() != nil {
			return false
		}
		item := frontier.Order[i]
		space.next(pair.Size[item])
		divide.begin(i)
		for state, arcs := range frontier.Arcs[i] {
			if state%looks == looks-1 && ctx.Err() != nil {
				return false
			}
			for choice, arc := range arcs {
				if arc.To != netlist.Nowhere {
					divide.run(pair, item, choice, arc, arc.To)
				}
			}
			divide.state(bounds{pair.Limit - pair.One.Load, pair.Limit - pair.Two.Load, pair.Both - divide.past[i][state]}, most, &space)
		}
		divide.end(i, len(frontier.Arcs[i]))
	}
	return true
}

// meeting is where labels from both ends meet.
type meeting struct {
	*Divider
	pair     *Pair
	space    space
	best     float64 // the larger load
	loads    Label
	one, two int32 // the labels, from the front and from the end
}

// at tries the labels of a state: for each from the front, the two from the end between
// which the loads change places. As the first load grows along the front, that place moves
// to the front in the rear, so that all are found in one pass.
func (meet *meeting) at(state int) {
	front, rear := meet.otherStart, meet.start
	last := rear[state+1] - 1
	for one := front[state]; one < front[state+1]; one++ {
		label := meet.other[one]
		for last > rear[state] && label.One+meet.labels[last].One > label.Two+meet.labels[last].Two {
			last--
		}
		for two := max(rear[state], last-beside); two < min(last+1+beside, rear[state+1]); two++ {
			meet.try(one, two)
		}
	}
}

// beside is how many labels are tried on each side of the best, for their bytes.
const beside = 2

// try takes two labels if they fit together and are better.
func (meet *meeting) try(one, two int32) {
	front, rear := &meet.other[one], &meet.labels[two]
	sum := Label{front.One + rear.One, front.Two + rear.Two, front.Bytes + rear.Bytes}
	larger, within := max(sum.One, sum.Two), sum.One+sum.Two <= meet.pair.Both && meet.space.fits(sum.Bytes)
	if larger < meet.best && larger <= meet.pair.Limit && within {
		meet.best, meet.loads, meet.one, meet.two = larger, sum, one, two
	}
}
