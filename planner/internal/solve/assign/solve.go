package assign

import (
	"context"
	"fmt"
	"math/big"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Solve finds the assignment of the least largest share, and proves it. When
// the context ends, or Settings.Nodes is used up, it returns the best it has
// with Stopped set. The error is that of Problem.Check.
func Solve(ctx context.Context, p Problem, settings Settings) (Solution, error) {
	if err := p.Check(); err != nil {
		return Solution{}, err
	}
	s := &solver{ctx: ctx, it: newItems(&p), settings: settings}
	s.low, s.bound = s.it.average()
	s.start()
	s.climb()
	s.close()
	return s.solution()
}

// solver narrows the range from low, which is proved, to high, which is found.
type solver struct {
	ctx       context.Context
	it        *items
	settings  Settings
	place     []int
	high, low *big.Rat
	bound     string
	nodes     int64
	stopped   bool
	known     pool
}

// offer takes a better assignment.
func (s *solver) offer(place []int) {
	if place == nil {
		return
	}
	if v := s.it.value(place); s.high == nil || v.Cmp(s.high) < 0 {
		s.place, s.high = place, v
	}
}

// done says that nothing is left to find, or that it is near enough.
func (s *solver) done() bool {
	if s.low.Cmp(s.high) >= 0 {
		return true
	}
	if s.settings.Gap <= 0 {
		return false
	}
	gap := new(big.Rat).Sub(s.high, s.low)
	g, _ := gap.Quo(gap, s.high).Float64()
	return g <= s.settings.Gap
}

// start finds assignments without proof.
func (s *solver) start() {
	s.improved(s.it.lpt())
	if s.done() {
		return
	}
	s.improved(s.it.multifit(s.low, s.high))
	if s.done() || !s.alike() {
		return
	}
	s.improved(s.it.ldm())
}

func (s *solver) improved(place []int) {
	if place != nil {
		s.it.improve(s.ctx, place)
		s.offer(place)
	}
}

// alike says that all devices are.
func (s *solver) alike() bool {
	for d, b := range s.it.p.Budgets {
		if b != s.it.p.Budgets[0] || s.it.fixed(d) != s.it.fixed(0) {
			return false
		}
	}
	return true
}

// raise notes that nothing fits under caps.
func (s *solver) raise(caps []int64, why string) {
	if next := s.it.next(caps); next != nil && next.Cmp(s.low) > 0 {
		s.low, s.bound = next, why
	}
}

// climb bisects for the highest limit that the bounds refute.
func (s *solver) climb() {
	top := s.high
	for first := true; s.low.Cmp(top) < 0 && s.ctx.Err() == nil; first = false {
		limit := s.low
		if !first {
			limit = middle(s.low, top)
		}
		caps := s.it.room(limit, false)
		if why := s.it.refute(caps); why != "" {
			s.raise(caps, why)
			continue
		}
		if first || s.it.next(caps) == nil {
			return
		}
		// The same caps below limit: go on under the shares that give them.
		if low := s.it.room(s.low, false); same(low, caps) {
			return
		}
		top = limit
	}
}

func same(a, b []int64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func middle(a, b *big.Rat) *big.Rat {
	m := new(big.Rat).Add(a, b)
	return m.Mul(m, big.NewRat(1, 2))
}

// solution is what is known at the end, certified.
func (s *solver) solution() (Solution, error) {
	out := Solution{Device: make([]int, len(s.it.p.Sizes)), Nodes: s.nodes}
	for pos, d := range s.place {
		out.Device[s.it.sorted[pos]] = d
	}
	claim := certificate.Claim{Bound: s.bound, Rounding: certificate.Exact, Stopped: s.stopped}
	claim.Value, _ = s.high.Float64()
	claim.LowerBound, _ = s.low.Float64()
	if s.low.Cmp(s.high) < 0 { // by less than a float64 tells apart, too
		claim.LowerBound = min(claim.LowerBound, claim.Value*(1-2*certificate.Exact))
	}
	var largest float64
	out.Load, largest = s.it.p.Score(out.Device)
	var err error
	if out.Certificate, err = claim.Certify(largest); err != nil {
		return Solution{}, fmt.Errorf("assign: %w", err)
	}
	return out, nil
}

// Score judges an assignment from the definitions alone: what each device
// holds, and the largest share.
func (p *Problem) Score(device []int) (loads []int64, largest float64) {
	loads = make([]int64, len(p.Budgets))
	copy(loads, p.Fixed)
	for i, d := range device {
		loads[d] += p.Sizes[i]
	}
	for d, load := range loads {
		largest = max(largest, float64(load)/float64(p.Budgets[d]))
	}
	return loads, largest
}
