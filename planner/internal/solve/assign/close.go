package assign

import (
	"math/big"
	"slices"
)

// short is how many devices a search fills before the linear program is asked.
const short, again = 5000, 2000

// perDivision is how many nodes there are to one step of redivide.
const perDivision = 4

// close asks for limits between the bound and the value whether all items fit,
// until none is left between. Questions that are long to answer are passed over
// and asked again with more time once the others are answered.
func (call *solver) close() {
	for nodes := int64(4 * short); !call.done(); nodes *= 4 {
		call.divided = false
		if !call.round(nodes) {
			call.stopped = true
			return
		}
	}
}

// round starts at the bound and goes up in steps that double: a low limit
// leaves little room to waste and is quick to refute, and where something fits
// under it nothing is left to prove (iterative weakening; Schreiber, Korf and
// Moffitt, J. ACM 65, 2018). Once something new was found it halves the range.
// It returns false when the search is over.
func (call *solver) round(nodes int64) bool {
	low := call.low // as if what was passed over had been refuted
	step := new(big.Rat)
	halve := false
	for !call.done() && low.Cmp(call.high) < 0 {
		limit := new(big.Rat).Add(low, step)
		if halve {
			limit = middle(low, call.high)
		}
		caps := call.it.room(limit, false)
		if limit.Cmp(call.high) >= 0 || fits(call.it.room(call.high, true), caps) {
			caps = call.it.room(call.high, true)
		}
		switch call.decide(caps, nodes) {
		case yes:
			halve = true
			continue
		case stopped:
			if call.ctx.Err() != nil || call.spent() {
				return false
			}
		case no:
		}
		if next := call.it.next(caps); next != nil && next.Cmp(low) > 0 {
			low = next
		}
		if step.Sign() == 0 {
			step.SetFrac64(call.it.unit, slices.Max(call.it.problem.Budgets))
		} else {
			step.Add(step, step)
		}
	}
	return true
}

// fits says that no device may hold more under a than under b.
func fits(a, b []int64) bool {
	for device := range a {
		if a[device] > b[device] {
			return false
		}
	}
	return true
}

// decide answers for one limit and takes the answer in.
func (call *solver) decide(caps []int64, nodes int64) verdict {
	if why := call.it.refute(caps); why != "" {
		call.raise(caps, why)
		return no
	}
	answer := call.search(newSearch(call.ctx, call.it, caps, min(short, call.left())), caps)
	if answer != stopped || call.ctx.Err() != nil || call.spent() {
		return answer
	}
	return call.decideLong(caps, nodes)
}

// decideLong answers where a short search does not: with a division anew, with
// the linear program, which may refute the limit or lead to an assignment under
// it, and with a longer search at its prices.
func (call *solver) decideLong(caps []int64, nodes int64) verdict {
	if !call.divided && call.alike() {
		call.divided = true
		call.offer(call.redivide(caps[0], nodes/perDivision))
		if fits(call.it.room(call.high, false), caps) {
			return yes
		}
	}
	find := newSearch(call.ctx, call.it, caps, min(nodes, call.left()))
	if len(call.known.sets) == 0 {
		call.it.seed(&call.known, find.caps[0])
	}
	of, most, table, refuted, ok := call.it.dual(call.ctx, find.caps, find.left, &call.known)
	if refuted {
		call.raise(caps, byProgram)
		return no
	}
	if ok && call.alike() {
		if sets := call.dive(caps[0], len(caps), nodes/short); sets != nil {
			call.offer(call.it.placed(sets))
		}
		if fits(call.it.room(call.high, false), caps) { // sets may be over where sums are kept in steps
			return yes
		}
	}
	if ok {
		find.price(of, most, table)
		find.again, find.known = again, &call.known
	}
	return call.search(find, caps)
}

func (call *solver) spent() bool { return call.settings.Nodes > 0 && call.nodes >= call.settings.Nodes }

// left is how many nodes may still be spent.
func (call *solver) left() int64 {
	if call.settings.Nodes <= 0 {
		return 1 << 60
	}
	return max(call.settings.Nodes-call.nodes, 0)
}

// search runs a search about caps and takes its answer in.
func (call *solver) search(find *search, caps []int64) verdict {
	nodes := find.nodes
	answer := find.run()
	call.nodes += nodes - max(find.nodes, 0)
	switch answer {
	case yes:
		call.offer(find.place(caps))
	case no:
		call.raise(caps, bySearch)
	case stopped:
	}
	return answer
}
