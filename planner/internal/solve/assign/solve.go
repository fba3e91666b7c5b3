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
func Solve(ctx context.Context, problem Problem, settings Settings) (Solution, error) {
	if err := problem.Check(); err != nil {
		return Solution{}, err
	}
	call := &solver{ctx: ctx, it: newItems(&problem), settings: settings}
	call.low, call.bound = call.it.average()
	call.start()
	call.climb()
	call.close()
	return call.solution()
}

// solver narrows the range from low, which is proved, to high, which is found.
type solver struct {
	ctx       context.Context
	it        *itemTable
	settings  Settings
	place     []int
	high, low *big.Rat
	bound     string
	nodes     int64
	stopped   bool
	divided   bool // in this round
	known     pool
}

// offer takes a better assignment.
func (call *solver) offer(place []int) {
	if place == nil {
		return
	}
	if v := call.it.value(place); call.high == nil || v.Cmp(call.high) < 0 {
		call.place, call.high = place, v
	}
}

// done says that nothing is left to find, or that it is near enough.
func (call *solver) done() bool {
	if call.low.Cmp(call.high) >= 0 {
		return true
	}
	if call.settings.Gap <= 0 {
		return false
	}
	gap := new(big.Rat).Sub(call.high, call.low)
	gradient, _ := gap.Quo(gap, call.high).Float64()
	return gradient <= call.settings.Gap
}

// start finds assignments without proof.
func (call *solver) start() {
	call.improved(call.it.lpt())
	if call.done() {
		return
	}
	call.improved(call.it.multifit(call.low, call.high))
	if call.done() || !call.alike() {
		return
	}
	call.improved(call.it.ldm())
}

func (call *solver) improved(place []int) {
	if place != nil {
		call.it.improve(call.ctx, place)
		call.offer(place)
	}
}

// alike says that all devices are.
func (call *solver) alike() bool {
	for device, budget := range call.it.problem.Budgets {
		if budget != call.it.problem.Budgets[0] || call.it.fixed(device) != call.it.fixed(0) {
			return false
		}
	}
	return true
}

// raise notes that nothing fits under caps.
func (call *solver) raise(caps []int64, why string) {
	if next := call.it.next(caps); next != nil && next.Cmp(call.low) > 0 {
		call.low, call.bound = next, why
	}
}

// climb bisects for the highest limit that the bounds refute.
func (call *solver) climb() {
	top := call.high
	for first := true; call.low.Cmp(top) < 0 && call.ctx.Err() == nil; first = false {
		limit := call.low
		if !first {
			limit = middle(call.low, top)
		}
		caps := call.it.room(limit, false)
		if why := call.it.refute(caps); why != "" {
			call.raise(caps, why)
			continue
		}
		if first || call.it.next(caps) == nil {
			return
		}
		// The same caps below limit: go on under the shares that give them.
		if low := call.it.room(call.low, false); same(low, caps) {
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
func (call *solver) solution() (Solution, error) {
	out := Solution{Device: make([]int, len(call.it.problem.Sizes)), Nodes: call.nodes}
	for pos, device := range call.place {
		out.Device[call.it.sorted[pos]] = device
	}
	claim := certificate.Claim{Bound: call.bound, Rounding: certificate.Exact, Stopped: call.stopped}
	claim.Value, _ = call.high.Float64()
	claim.LowerBound, _ = call.low.Float64()
	if call.low.Cmp(call.high) < 0 { // by less than a float64 tells apart, too
		claim.LowerBound = min(claim.LowerBound, claim.Value*(1-2*certificate.Exact))
	}
	var largest float64
	out.Load, largest = call.it.problem.Score(out.Device)
	var err error
	if out.Certificate, err = claim.Certify(largest); err != nil {
		return Solution{}, fmt.Errorf("assign: %w", err)
	}
	return out, nil
}

// Score judges an assignment from the definitions alone: what each device
// holds, and the largest share.
func (problem *Problem) Score(device []int) (loads []int64, largest float64) {
	loads = make([]int64, len(problem.Budgets))
	copy(loads, problem.Fixed)
	for i, deviceIndex := range device {
		loads[deviceIndex] += problem.Sizes[i]
	}
	for deviceIndex, load := range loads {
		largest = max(largest, float64(load)/float64(problem.Budgets[deviceIndex]))
	}
	return loads, largest
}
