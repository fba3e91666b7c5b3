package chain

// probe asks whether some map keeps every device d within caps[d], and
// records how far each state reaches.
//
// It is exact. Let greedy and any map within the caps pass the same states,
// and let greedy's cut d be at or past the map's. Up to the map's next cut,
// what greedy's device would hold is part of what the map's holds, so by
// monotonicity it fits, and greedy's next cut is at or past the map's again;
// if greedy is past that cut already, its run may be empty, which holds no
// more than any other. Windows rise along a path, so clamping to them keeps
// the order. Of two ways into one state, the one that reaches farther can
// hence finish whatever the other can.
//
// When it fails, bid is the least share at which some device could have gone
// farther: any limit below it leaves every step as it was, so no map is
// better than bid (Pinar and Aykanat's bidding).
func (t *task) probe() (ok bool, bid Share) {
	for i := range t.reach {
		t.reach[i] = -1
	}
	t.reach[0] = 0
	bid = Share{-1, 1}
	for d := range t.k {
		for s := range t.sets {
			a := t.reach[d*t.sets+s]
			if a < 0 {
				continue
			}
			rest := t.sets - 1 - s
			for take := rest; ; take = (take - 1) & rest {
				if next := t.advance(d, s, a, take); next.Peak >= 0 && (bid.Peak < 0 || next.less(bid)) {
					bid = next
				}
				if take == 0 {
					break
				}
			}
		}
	}
	return t.reach[len(t.reach)-1] >= 0, bid
}

// advance gives device d the clusters in take and the longest run from a. It
// returns the share at which it would go one item farther, a negative one if
// nothing stops it but its window.
func (t *task) advance(d, s, a, take int) (bid Share) {
	bid.Peak = -1
	if !t.allows(d+1, s|take) {
		return bid
	}
	to := (d+1)*t.sets + s | take
	lo, hi := t.window(d+1, s|take)
	// Nothing is gained by stopping where another way has come already.
	lo = max(lo, a, t.reach[to]+1)
	if lo > hi {
		return bid
	}
	b := t.farthest(d, a, lo, hi, take)
	if b >= lo {
		t.reach[to], t.took[to] = b, take
	}
	if b < hi {
		bid = Share{t.peak(d, a, b+1, take), t.Budgets[d]}
	}
	return bid
}

// farthest returns the largest b in [lo, hi] with [a, b) within the cap of
// device d, lo-1 if there is none. It gallops, then halves.
func (t *task) farthest(d, a, lo, hi, take int) int {
	fits := func(b int) bool { return t.peak(d, a, b, take) <= t.caps[d] }
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

// trace returns the map behind the last probe, which succeeded.
func (t *task) trace() placement {
	m := placement{cuts: make([]int, t.k+1), groups: make([]uint64, t.k)}
	s := t.sets - 1
	for d := t.k; d > 0; d-- {
		m.cuts[d] = t.reach[d*t.sets+s]
		take := t.took[d*t.sets+s]
		m.groups[d-1] = t.base[d-1] | t.groups[take]
		s &^= take
	}
	return m
}
