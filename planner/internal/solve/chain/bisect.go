package chain

import "math"

// incumbent is the best map so far, its largest share, and a lower bound for all maps.
type incumbent struct {
	placement
	value, lower Share
}

func (inc *incumbent) proved() bool { return !inc.lower.less(inc.value) }

// seed returns a first map with two probes: one at the guess, and if that fails, one without a
// limit, which always succeeds.
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
// The midpoint is a float and only guides the search. Both ends are exact: a successful probe gives
// a map, whose share becomes value, and a failed one gives a bid, which becomes lower. The caps
// stay between those of lower and those just below value. So every probe moves one end, and the
// last probe proves every share below value infeasible.
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

// improve probes at the caps, which are below value and not below lower. It updates the map or the
// bound, and reports success.
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

// limit sets the caps to the largest peaks whose share is at most the given one.
func (job *task) limit(share Share) {
	for device, budget := range job.Budgets {
		job.caps[device] = share.within(budget)
	}
}

// undercut sets the caps to the largest peaks whose share is below the given one.
func (job *task) undercut(share Share) {
	for device, budget := range job.Budgets {
		job.caps[device] = share.Below(budget)
	}
}
