package chain

// probe reports whether some map keeps every device d within caps[d]. It records how far each state
// reaches.
//
// It is exact. Let greedy and any map within the caps pass the same states, and let greedy's cut d
// be at or past the map's. Up to the map's next cut, the items of greedy's device are part of the
// map's run. By monotonicity they fit, so greedy's next cut is again at or past the map's. If
// greedy is past that cut already, its run may be empty, which has the least peak. Windows rise
// along a path, so clamping to them keeps the order. If two ways lead to one state, the one that
// reaches farther can finish whenever the other can.
//
// If the probe fails, bid is the least share at which some device could have gone farther. A limit
// below bid changes no step, so no map is better than bid (Pinar and Aykanat's bidding).
func (job *task) probe() (ok bool, bid Share) {
	for i := range job.reach {
		job.reach[i] = -1
	}
	job.reach[0] = 0
	bid = Share{-1, 1}
	for device := range job.k {
		for set := range job.sets {
			a := job.reach[device*job.sets+set]
			if a < 0 {
				continue
			}
			rest := job.sets - 1 - set
			for take := rest; ; take = (take - 1) & rest {
				if next := job.advance(device, set, a, take); next.Peak >= 0 && (bid.Peak < 0 || next.less(bid)) {
					bid = next
				}
				if take == 0 {
					break
				}
			}
		}
	}
	return job.reach[len(job.reach)-1] >= 0, bid
}

// advance gives device the clusters in take and the longest run from a. It returns the share at
// which it would go one item farther; negative if only its window stops it.
func (job *task) advance(device, set, a, take int) (bid Share) {
	bid.Peak = -1
	if !job.allows(device+1, set|take) {
		return bid
	}
	to := (device+1)*job.sets + set | take
	lo, hi := job.window(device+1, set|take)
	// Stopping at or before a cut that another way has reached gains nothing.
	lo = max(lo, a, job.reach[to]+1)
	if lo > hi {
		return bid
	}
	b := job.farthest(device, a, lo, hi, take)
	if b >= lo {
		job.reach[to], job.took[to] = b, take
	}
	if b < hi {
		bid = Share{job.peak(device, a, b+1, take), job.Budgets[device]}
	}
	return bid
}

// farthest returns the largest b in [lo, hi] with [a, b) within the cap of a device, lo-1 if there
// is none. It doubles its steps, then bisects.
func (job *task) farthest(device, a, lo, hi, take int) int {
	fits := func(b int) bool { return job.peak(device, a, b, take) <= job.caps[device] }
	if !fits(lo) {
		return lo - 1
	}
	good, bad := lo, hi+1
	for step := 1; good+step <= hi; step *= 2 {
		if !fits(good + step) {
			bad = good + step
			break
		}
		good += step
	}
	for bad-good > 1 {
		mid := int(uint(good+bad) / 2)
		if fits(mid) {
			good = mid
		} else {
			bad = mid
		}
	}
	return good
}

// trace returns the map of the last probe, which succeeded.
func (job *task) trace() placement {
	placed := placement{cuts: make([]int, job.k+1), groups: make([]uint64, job.k)}
	set := job.sets - 1
	for device := job.k; device > 0; device-- {
		placed.cuts[device] = job.reach[device*job.sets+set]
		take := job.took[device*job.sets+set]
		placed.groups[device-1] = job.base[device-1] | job.groups[take]
		set &^= take
	}
	return placed
}
