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
	sums              []sums // of the units before each
	forward, backward folds
	late, last        sparse
}

// sums are the additive figures of the units before one.
type sums struct {
	static, saved, grads, step, held, grown int64
	products                                int // how many units run them
}

// NewChain prepares units in time order.
func NewChain(units []costmodel.Unit) *Chain {
	n := len(units)
	c := &Chain{sums: make([]sums, n+1)}
	forward, backward := make([]Fold, n), make([]Fold, n)
	late, last := make([]int64, n), make([]int64, n)
	for i := range units {
		s := Of(&units[i])
		c.sums[i+1] = c.sums[i].plus(&s)
		forward[i], backward[n-1-i] = s.folds()
		late[i], last[i] = s.HeadPeak, s.LastBackward
	}
	c.forward, c.backward = newFolds(forward), newFolds(backward)
	c.late, c.last = unlessZero(late), unlessZero(last)
	return c
}

func (s sums) plus(unit *Summary) sums {
	s.static += unit.Static
	s.saved += unit.Saved
	s.grads += unit.Grads
	s.step += unit.StepTransient
	s.held += unit.UntilBodyEnd
	s.grown += unit.CacheGrowth
	if unit.Products {
		s.products++
	}
	return s
}

// Summary is that of units [a, b): what [Summary.Join] makes of them.
func (c *Chain) Summary(a, b int) Summary {
	if a >= b {
		return Summary{}
	}
	before, end, n := &c.sums[a], &c.sums[b], len(c.sums)-1
	saved := end.saved - before.saved
	return Summary{
		Static:        end.static - before.static,
		Saved:         saved,
		Grads:         end.grads - before.grads,
		Forward:       c.forward.of(a, b),
		Backward:      saved + c.backward.of(n-b, n-a),
		LastBackward:  c.last.max(a, b),
		StepTransient: end.step - before.step,
		UntilBodyEnd:  end.held - before.held,
		CacheGrowth:   end.grown - before.grown,
		HeadPeak:      c.late.max(a, b),
		Products:      end.products > before.products,
	}
}

// folds answer for the peak of any stretch of a sequence of folds.
type folds struct {
	net  []int64 // of all before each
	peak sparse  // of each, above what was there before all
}

func newFolds(each []Fold) folds {
	f := folds{net: make([]int64, len(each)+1)}
	peaks := make([]int64, len(each))
	for i, fold := range each {
		peaks[i] = f.net[i] + fold.Peak
		f.net[i+1] = f.net[i] + fold.Net
	}
	f.peak = newSparse(peaks)
	return f
}

// of is the peak of the folds [a, b), a < b.
func (f *folds) of(a, b int) int64 { return f.peak.max(a, b) - f.net[a] }

// sparse holds, per power of two, the maxima of all stretches of that length.
type sparse [][]int64

// unlessZero is nil where all maxima are 0, as of what only some modes have.
func unlessZero(values []int64) sparse {
	if len(values) == 0 || slices.Max(values) <= 0 {
		return nil
	}
	return newSparse(values)
}

func newSparse(values []int64) sparse {
	s := sparse{values}
	for width := 1; 2*width <= len(values); width *= 2 {
		half := s[len(s)-1]
		next := make([]int64, len(values)-2*width+1)
		for i := range next {
			next[i] = max(half[i], half[i+width])
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
	level := bits.Len(uint(b-a)) - 1
	return max(s[level][a], s[level][b-(1<<level)])
}
