package timeline

import (
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Chain answers for any stretch of a sequence of units in O(1), after
// O(n log n) preparation: prefix sums of what is additive, and sparse tables
// (Bender and Farach-Colton, LATIN 2000, §3) for the maxima.
type Chain struct {
	static, saved, grads, step []int64 // prefix sums, length n+1
	held, grown, products      []int64 // also; products counts units
	forward, backward          sparse
	late, last                 sparse
}

// NewChain prepares units in time order.
func NewChain(units []costmodel.Unit) *Chain {
	n := len(units)
	c := &Chain{
		static: make([]int64, n+1), saved: make([]int64, n+1),
		grads: make([]int64, n+1), step: make([]int64, n+1),
		held: make([]int64, n+1), grown: make([]int64, n+1), products: make([]int64, n+1),
	}
	fwd, bwd := make([]int64, n), make([]int64, n)
	late, last := make([]int64, n), make([]int64, n)
	for i := range units {
		r := Of(&units[i])
		c.static[i+1] = c.static[i] + r.Static
		c.saved[i+1] = c.saved[i] + r.Saved
		c.grads[i+1] = c.grads[i] + r.Grads
		c.step[i+1] = c.step[i] + r.StepTransient
		c.held[i+1] = c.held[i] + r.Held
		c.grown[i+1] = c.grown[i] + r.Grown
		c.products[i+1] = c.products[i]
		if r.Products {
			c.products[i+1]++
		}
		// The terms of Summary's maxima that depend on l alone.
		fwd[i] = c.saved[i] + c.held[i] + r.Forward
		bwd[i] = c.saved[i] - c.grads[i+1] + r.Backward
		late[i], last[i] = r.Late, r.Last
	}
	c.forward, c.backward = newSparse(fwd), newSparse(bwd)
	c.late, c.last = unlessZero(late), unlessZero(last)
	return c
}

// Summary is the closed form of units [a, b).
func (c *Chain) Summary(a, b int) Summary {
	if a >= b {
		return Summary{}
	}
	return Summary{
		Static:        c.static[b] - c.static[a],
		Saved:         c.saved[b] - c.saved[a],
		Grads:         c.grads[b] - c.grads[a],
		Last:          c.last.max(a, b),
		StepTransient: c.step[b] - c.step[a],
		Forward:       c.forward.max(a, b) - c.saved[a] - c.held[a],
		Backward:      c.backward.max(a, b) - c.saved[a] + c.grads[b],
		Held:          c.held[b] - c.held[a],
		Grown:         c.grown[b] - c.grown[a],
		Late:          c.late.max(a, b),
		Products:      c.products[b] > c.products[a],
	}
}

// sparse holds, per power of two, the maxima of all stretches of that length.
type sparse [][]int64

// unlessZero is nil where all maxima are 0, as of what only some modes have.
func unlessZero(v []int64) sparse {
	if len(v) == 0 || slices.Max(v) <= 0 {
		return nil
	}
	return newSparse(v)
}

func newSparse(v []int64) sparse {
	s := sparse{v}
	for w := 1; 2*w <= len(v); w *= 2 {
		prev := s[len(s)-1]
		next := make([]int64, len(v)-2*w+1)
		for i := range next {
			next[i] = max(prev[i], prev[i+w])
		}
		s = append(s, next)
	}
	return s
}

// max is the maximum of [a, b), a < b.
func (s sparse) max(a, b int) int64 {
	if s == nil {
		return 0
	}
	k := bits.Len(uint(b-a)) - 1
	return max(s[k][a], s[k][b-(1<<k)])
}
