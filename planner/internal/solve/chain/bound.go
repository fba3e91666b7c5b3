package chain

import "math"

// Bound names the argument behind a lower bound.
type Bound string

// The arguments, the first that applies.
const (
	BoundUnit    Bound = "largest unit" // one item or group alone on its best device
	BoundAverage Bound = "average"      // all there is, against all budgets together
	BoundSearch  Bound = "search"       // probes refuted every smaller share
)

// bounds holds what is known before the search.
type bounds struct {
	unit  Share
	total int64 // least sum of all peaks; 0 unless Additive
	sum   int64 // of the budgets
	whole int64 // least peak of the whole chain on one device
}

func (b bounds) lower() Share { return maxShare(b.unit, Share{b.total, b.sum}) }

// guess is a share that greedy reaches with equal budgets, no pins and an
// additive Peak: a device that cannot take its next item already holds more
// than the average. Elsewhere it is only a place to start.
func (b bounds) guess() Share {
	const one = 1 << 32
	g := b.unit.Float() + float64(max(b.total, b.whole))/float64(b.sum)
	if g >= math.MaxInt64/one {
		return Share{math.MaxInt64, 1}
	}
	return Share{int64(math.Ceil(g * one)), one}
}

// name says which argument proves s, the least of the bounds that reach it.
// The average argument is that of whole bytes: the largest peaks below s do
// not add up to the total.
func (b bounds) name(s Share, budgets []int64) Bound {
	if !b.unit.less(s) {
		return BoundUnit
	}
	room := int64(0)
	for _, budget := range budgets {
		room = plus(room, max(s.below(budget), 0))
	}
	if room < b.total {
		return BoundAverage
	}
	return BoundSearch
}

// plus adds two non-negative numbers, cut off at the largest int64: a bound
// stays one when it is cut.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bounds takes O(n k) Peak calls, where k counts devices of which each differs
// from the one before; it ends with the run, as the bounds hold for what it has
// seen. Clusters left out of the task count for the unit bound only.
func (t *task) bounds(r *run) bounds {
	b := bounds{unit: Share{0, 1}, whole: math.MaxInt64}
	empty := make([]int64, t.k)
	for d, budget := range t.Budgets {
		empty[d] = t.peak(d, 0, 0, 0)
		b.unit = maxShare(b.unit, Share{empty[d], budget})
		b.whole = min(b.whole, t.peak(d, 0, t.Items, 0))
		b.sum += budget
	}
	for _, c := range t.clusters {
		b.unit = maxShare(b.unit, t.alone(c))
	}
	items := int64(0)
	lo, hi := 0, 0 // the devices that the windows allow for item i
	other := t.others()
	for i := range t.Items {
		if i%1024 == 1023 && r.ctx.Err() != nil {
			break
		}
		for t.maxCut[lo+1] <= i {
			lo++
		}
		for hi+1 < t.k && t.minCut[hi+1] <= i {
			hi++
		}
		best, least := Share{math.MaxInt64, 1}, int64(math.MaxInt64)
		for d := lo; d <= hi; d = other[d] {
			p := t.peak(d, i, i+1, 0)
			if s := (Share{p, t.Budgets[d]}); s.less(best) {
				best = s
			}
			least = min(least, p-empty[d])
		}
		b.unit = maxShare(b.unit, best)
		items = plus(items, least)
	}
	if t.Additive {
		b.total = plus(items, t.leastEmpty())
	}
	return b
}

// others is, per device, the next that is not like it.
func (t *task) others() []int {
	next := make([]int, t.k)
	for d := t.k - 1; d >= 0; d-- {
		next[d] = d + 1
		if t.Alike != nil && d+1 < t.k && t.Alike[d] == t.Alike[d+1] && t.base[d] == t.base[d+1] {
			next[d] = next[d+1]
		}
	}
	return next
}

// alone returns the least share of a device that holds c and its followers.
func (t *task) alone(c cluster) Share {
	best := Share{math.MaxInt64, 1}
	for d, budget := range t.Budgets {
		if c.follows() && (t.minCut[d] > c.first || t.maxCut[d+1] <= c.last) {
			continue
		}
		s := Share{t.Peak(d, c.first, c.last+1, t.base[d]|c.groups), budget}
		if s.less(best) {
			best = s
		}
	}
	return best
}

// leastEmpty returns the least sum of the devices' peaks without items, over
// the ways to place the free clusters. Groups need not add up, so it looks at
// every one, subset by subset.
func (t *task) leastEmpty() int64 {
	sums := make([]int64, t.sets)
	for s := range sums {
		sums[s] = math.MaxInt64
	}
	sums[0] = 0
	for d := range t.k {
		// Downwards, so that sums[s&^take] is still that of the device before.
		for s := t.sets - 1; s >= 0; s-- {
			best := int64(math.MaxInt64)
			for take := s; ; take = (take - 1) & s {
				best = min(best, plus(sums[s&^take], t.peak(d, 0, 0, take)))
				if take == 0 {
					break
				}
			}
			sums[s] = best
		}
	}
	return sums[t.sets-1]
}
