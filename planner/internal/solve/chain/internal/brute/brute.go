// Package brute is the judge of package chain: it looks at every map there
// is, in rational arithmetic. Slow and obvious on purpose.
package brute

import (
	"math/big"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Best is what the best maps of a problem have in common.
type Best struct {
	Maps    int      // how many satisfy the pins; with 0 the rest is nil
	Share   *big.Rat // least largest share
	Squares *big.Rat // least sum of squared shares among the maps with that
}

// Solve tries all cuts with all ways to place the groups.
func Solve(p *chain.Problem) Best {
	s := search{p: p, cuts: make([]int, len(p.Budgets)+1), device: make([]int, p.Groups), shares: map[key]*big.Rat{}}
	s.cuts[len(p.Budgets)] = p.Items
	s.placeGroups(0)
	return s.best
}

type search struct {
	p      *chain.Problem
	cuts   []int
	device []int // of each group
	best   Best
	shares map[key]*big.Rat // making a big.Rat is most of the cost
}

type key struct {
	d, a, b int
	groups  uint64
}

func (s *search) placeGroups(g int) {
	if g == s.p.Groups {
		s.placeCuts(1)
		return
	}
	for d := range s.p.Budgets {
		s.device[g] = d
		s.placeGroups(g + 1)
	}
}

func (s *search) placeCuts(d int) {
	if d == len(s.p.Budgets) {
		s.judge()
		return
	}
	for c := s.cuts[d-1]; c <= s.p.Items; c++ {
		s.cuts[d] = c
		s.placeCuts(d + 1)
	}
}

func (s *search) judge() {
	if !Allowed(s.p, s.cuts, s.device) {
		return
	}
	s.best.Maps++
	worst := s.share(0)
	for d := range s.p.Budgets {
		if x := s.share(d); x.Cmp(worst) > 0 {
			worst = x
		}
	}
	order := -1
	if s.best.Share != nil {
		order = worst.Cmp(s.best.Share)
	}
	if order > 0 {
		return
	}
	squares := new(big.Rat)
	for d := range s.p.Budgets {
		x := s.share(d)
		squares.Add(squares, new(big.Rat).Mul(x, x))
	}
	if order < 0 || squares.Cmp(s.best.Squares) < 0 {
		s.best.Share, s.best.Squares = worst, squares
	}
}

func (s *search) share(d int) *big.Rat {
	k := key{d, s.cuts[d], s.cuts[d+1], mask(s.device, d)}
	if s.shares[k] == nil {
		s.shares[k] = big.NewRat(s.p.Peak(d, k.a, k.b, k.groups), s.p.Budgets[d])
	}
	return s.shares[k]
}

func mask(device []int, d int) (groups uint64) {
	for g, e := range device {
		if e == d {
			groups |= 1 << g
		}
	}
	return groups
}

// Allowed says whether a map covers the chain in order, satisfies the
// problem's pins and followers, and under a Floor gives every device an item.
func Allowed(p *chain.Problem, cuts, device []int) bool {
	k := len(p.Budgets)
	if len(cuts) != k+1 || cuts[0] != 0 || cuts[k] != p.Items || len(device) != p.Groups || !slices.IsSorted(cuts) {
		return false
	}
	for d := range k {
		if p.Floor != nil && cuts[d] == cuts[d+1] {
			return false
		}
	}
	return kept(p, cuts, device)
}

func kept(p *chain.Problem, cuts, device []int) bool {
	on := func(i, d int) bool { return cuts[d] <= i && i < cuts[d+1] }
	for i, d := range p.Pins {
		if d >= 0 && !on(i, d) {
			return false
		}
	}
	for g, d := range p.GroupPins {
		if d >= 0 && device[g] != d {
			return false
		}
	}
	for g, items := range p.Follow {
		for _, i := range items {
			if !on(i, device[g]) {
				return false
			}
		}
	}
	return true
}
