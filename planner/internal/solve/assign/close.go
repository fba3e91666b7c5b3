package assign

import (
	"math/big"
	"slices"
)

// short is how many devices a search fills before the linear program is asked.
const short, again = 5000, 2000

// close asks for limits between the bound and the value whether all items fit,
// until none is left between. Questions that are long to answer are passed over
// and asked again with more time once the others are answered.
func (s *solver) close() {
	for nodes := int64(4 * short); !s.done(); nodes *= 4 {
		if !s.round(nodes) {
			s.stopped = true
			return
		}
	}
}

// round starts at the bound and goes up in steps that double: a low limit
// leaves little room to waste and is quick to refute, and where something fits
// under it nothing is left to prove (iterative weakening; Schreiber, Korf and
// Moffitt, J. ACM 65, 2018). Once something new was found it halves the range.
// It returns false when the search is over.
func (s *solver) round(nodes int64) bool {
	low := s.low // as if what was passed over had been refuted
	step := new(big.Rat)
	halve := false
	for !s.done() && low.Cmp(s.high) < 0 {
		limit := new(big.Rat).Add(low, step)
		if halve {
			limit = middle(low, s.high)
		}
		caps := s.it.room(limit, false)
		if limit.Cmp(s.high) >= 0 || fits(s.it.room(s.high, true), caps) {
			caps = s.it.room(s.high, true)
		}
		switch s.decide(caps, nodes) {
		case yes:
			halve = true
			continue
		case stopped:
			if s.ctx.Err() != nil || s.spent() {
				return false
			}
		case no:
		}
		if next := s.it.next(caps); next != nil && next.Cmp(low) > 0 {
			low = next
		}
		if step.Sign() == 0 {
			step.SetFrac64(s.it.unit, slices.Max(s.it.p.Budgets))
		} else {
			step.Add(step, step)
		}
	}
	return true
}

// fits says that no device may hold more under a than under b.
func fits(a, b []int64) bool {
	for d := range a {
		if a[d] > b[d] {
			return false
		}
	}
	return true
}

// decide answers for one limit and takes the answer in.
func (s *solver) decide(caps []int64, nodes int64) verdict {
	if why := s.it.refute(caps); why != "" {
		s.raise(caps, why)
		return no
	}
	v := s.search(caps, short, false)
	if v == stopped && s.ctx.Err() == nil && !s.spent() {
		v = s.search(caps, nodes, true)
	}
	return v
}

func (s *solver) spent() bool { return s.settings.Nodes > 0 && s.nodes >= s.settings.Nodes }

// left is how many nodes may still be spent.
func (s *solver) left() int64 {
	if s.settings.Nodes <= 0 {
		return 1 << 60
	}
	return max(s.settings.Nodes-s.nodes, 0)
}

// search fills at most nodes devices, with the linear program's prices if asked.
func (s *solver) search(caps []int64, nodes int64, priced bool) verdict {
	nodes = min(nodes, s.left())
	find := newSearch(s.ctx, s.it, caps, nodes)
	if priced {
		of, most, table, refuted, ok := s.it.dual(s.ctx, find.caps, find.left, &s.known)
		if refuted {
			s.raise(caps, byProgram)
			return no
		}
		if ok {
			find.price(of, most, table)
			find.again, find.known = again, &s.known
		}
	}
	v := find.run()
	s.nodes += nodes - max(find.nodes, 0)
	switch v {
	case yes:
		s.offer(find.place(caps))
	case no:
		s.raise(caps, bySearch)
	case stopped:
	}
	return v
}
