package chain

import "math"

// incumbent is the best map so far, its largest share, and a bound that no
// map beats.
type incumbent struct {
	placement
	value, lower Share
}

func (inc *incumbent) proved() bool { return !inc.lower.less(inc.value) }

// seed returns a first map with two probes: at the guess, and if that fails
// with no limit at all, which always succeeds.
func (t *task) seed(r *run, lower, guess Share) incumbent {
	inc := incumbent{lower: lower}
	t.limit(guess)
	ok, bid := t.probe()
	r.probes++
	if !ok {
		inc.lower = maxShare(lower, bid)
		t.limit(Share{math.MaxInt64, 1})
		t.probe()
		r.probes++
	}
	inc.placement = t.trace()
	inc.value, _ = t.share(inc.placement)
	return inc
}

// bisect narrows [lower, value] until the two meet or the run is stopped.
//
// The midpoint is a float and only steers. Both ends are exact: a probe that
// succeeds yields a map, whose share becomes value, and one that fails yields
// a bid, which becomes lower. The caps are held between those of lower and
// those just below value, so every probe moves one end strictly, and the last
// one refutes every share below value.
func (t *task) bisect(r *run, inc *incumbent) {
	for !inc.proved() && !r.stop() {
		mid := inc.lower.Float() + (inc.value.Float()-inc.lower.Float())/2
		for d, b := range t.Budgets {
			c := int64(math.MaxInt64)
			if x := mid * float64(b); x < math.MaxInt64 {
				c = int64(x)
			}
			t.caps[d] = max(inc.lower.within(b), min(c, inc.value.below(b)))
		}
		t.improve(r, inc)
	}
}

// improve probes at the caps, which lie below value and not below lower, and
// takes over what it learns: a better map or a better bound.
func (t *task) improve(r *run, inc *incumbent) bool {
	ok, bid := t.probe()
	r.probes++
	if ok {
		inc.placement = t.trace()
		inc.value, _ = t.share(inc.placement)
	} else {
		inc.lower = bid
	}
	r.report(Progress{Best: inc.value, Lower: inc.lower})
	return ok
}

// limit sets the caps to the peaks whose share is at most s.
func (t *task) limit(s Share) {
	for d, b := range t.Budgets {
		t.caps[d] = s.within(b)
	}
}

// undercut sets the caps to the peaks whose share is less than s.
func (t *task) undercut(s Share) {
	for d, b := range t.Budgets {
		t.caps[d] = s.below(b)
	}
}
