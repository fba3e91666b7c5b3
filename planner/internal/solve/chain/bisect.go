package chain

import "math"

// incumbent is the best map so far, its largest share, and a lower bound for
// all maps.
type incumbent struct {
	placement
	value, lower Share
}

func (inc *incumbent) proved() bool { return !inc.lower.less(inc.value) }

// seed returns a first map with two probes: at the guess, and if that fails
// with no limit at all, which always succeeds.
func (job *task) seed(limits *run, lower, guess Share) incumbent {
	inc := incumbent{lower: lower}
	job.limit(guess)
	ok, bid := job.probe()
	limits.probes++
	if !ok {
		inc.lower = MaxShare(lower, bid)
		job.limit(Share{math.MaxInt64, 1})
		job.probe()
		limits.probes++
	}
	inc.placement = job.trace()
	inc.value, _ = job.share(inc.placement)
	return inc
}

// bisect narrows [lower, value] until the two meet or the run is stopped.
//
// The midpoint is a float and only steers. Both ends are exact: a probe that
// succeeds yields a map, whose share becomes value, and one that fails yields
// a bid, which becomes lower. The caps are held between those of lower and
// those just below value, so every probe moves one end strictly, and the last
// one proves every share below value infeasible.
func (job *task) bisect(limits *run, inc *incumbent) {
	for !inc.proved() && !limits.stop() {
		mid := inc.lower.Float() + (inc.value.Float()-inc.lower.Float())/2
		for device, budget := range job.Budgets {
			capacity := int64(math.MaxInt64)
			if x := mid * float64(budget); x < math.MaxInt64 {
				capacity = int64(x)
			}
			job.caps[device] = max(inc.lower.within(budget), min(capacity, inc.value.Below(budget)))
		}
		job.improve(limits, inc)
	}
}

// improve probes at the caps, which lie below value and not below lower, and
// takes over what it learns: a better map or a better bound.
func (job *task) improve(limits *run, inc *incumbent) bool {
	ok, bid := job.probe()
	limits.probes++
	if ok {
		inc.placement = job.trace()
		inc.value, _ = job.share(inc.placement)
	} else {
		inc.lower = bid
	}
	limits.report(Progress{Best: inc.value, Lower: inc.lower})
	return ok
}

// limit sets the caps to the peaks whose share is at most the one given.
func (job *task) limit(share Share) {
	for device, budget := range job.Budgets {
		job.caps[device] = share.within(budget)
	}
}

// undercut sets the caps to the peaks whose share is less.
func (job *task) undercut(share Share) {
	for device, budget := range job.Budgets {
		job.caps[device] = share.Below(budget)
	}
}
