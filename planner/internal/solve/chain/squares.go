package chain

import (
	"math"
	"math/bits"
)

// even looks for the map with the least sum of squared shares among those
// within limit, the least largest share. It reports whether it found one and
// whether that is proved to be the least.
//
// It is a dynamic program over the states of task, one layer per device, with
// a value for each cut that lies on a map within the limit. Those cuts form
// one window per state, from the backward reach to the forward reach: to any
// cut before the farthest, shrink the runs of the greedy map.
//
// Squares are counted in fixed point, as multiples of 2^-52 of the square of
// limit (coarser past 1024 devices). Sums are then exact in any order, equal
// shares on different devices tie, and the machine does not matter.
//
// Among ties, the last device gets the fewest groups (the least set as a
// number), then the fewest items; then the device before it, and so on.
func (t *task) even(r *run, limit Share) (m placement, found, proved bool) {
	t.limit(limit)
	t.probe()
	sq := t.newSquares(r, limit)
	if sq == nil {
		return m, false, false
	}
	for d := range t.k {
		for s := range t.sets {
			rest := t.sets - 1 - s
			for take := rest; ; take = (take - 1) & rest {
				sq.step(d, s, take)
				if take == 0 {
					break
				}
			}
		}
		if sq.quit || r.cancelled() {
			return m, false, false
		}
		r.report(Progress{Best: limit, Lower: limit, Done: d + 1, Total: t.k})
	}
	return sq.trace(), true, !sq.rough
}

// squares is the state of the dynamic program.
type squares struct {
	*task
	ruler
	cuts  []span // per state
	run   *run
	cells int64 // sums looked at so far
	polls int64 // cells at the next look at the limits
	rough bool  // divide is used though it may not be exact
	quit  bool  // stopped, or out of cells
}

// ruler measures squared shares in fixed point.
type ruler struct {
	scale float64
	inv   []float64 // per device, 1/(budget*limit)
}

func newRuler(budgets []int64, limit Share) ruler {
	r := ruler{scale: math.Ldexp(1, min(52, 62-bits.Len(uint(len(budgets))))), inv: make([]float64, len(budgets))}
	for d, b := range budgets {
		if limit.Peak > 0 {
			r.inv[d] = 1 / (float64(b) * limit.Float())
		}
	}
	return r
}

// square is the squared share of a peak on device d, in fixed point. The
// conversions keep the compiler from fusing the products with what follows.
func (r *ruler) square(d int, peak int64) uint64 {
	x := float64(float64(peak) * r.inv[d])
	return uint64(float64(x*x*r.scale) + 0.5)
}

// span holds the least sums for the cuts [lo, lo+len(sums)) of a state.
type span struct {
	lo   int
	sums []uint64
}

func (c span) hi() int { return c.lo + len(c.sums) - 1 }

// maxSums keeps the sums under 256 MiB.
const maxSums = 1 << 25

const unreached = math.MaxUint64

// newSquares lays out the windows, nil if they hold more than maxSums cuts.
func (t *task) newSquares(r *run, limit Share) *squares {
	sq := &squares{task: t, run: r, ruler: newRuler(t.Budgets, limit), cuts: make([]span, len(t.reach))}
	nearest := t.nearest()
	size := 0
	for i, far := range t.reach {
		if near := nearest[i]; near >= 0 && near <= far {
			size += far - near + 1
		}
	}
	if size > maxSums {
		return nil
	}
	store := make([]uint64, size)
	for i := range store {
		store[i] = unreached
	}
	for i, far := range t.reach {
		if near := nearest[i]; near >= 0 && near <= far {
			w := far - near + 1
			sq.cuts[i] = span{near, store[:w:w]}
			store = store[w:]
		}
	}
	sq.cuts[0].sums[0] = 0
	return sq
}

// nearest is probe run backwards: per state the first cut from which the
// devices from d on can take the rest, -1 if there is none.
func (t *task) nearest() []int {
	near := make([]int, len(t.reach))
	for i := range near {
		near[i] = -1
	}
	near[len(near)-1] = t.Items
	for d := t.k - 1; d >= 0; d-- {
		for s := range t.sets {
			if !t.allows(d, s) {
				continue
			}
			at := d*t.sets + s
			lo, hi := t.window(d, s)
			rest := t.sets - 1 - s
			for take := rest; ; take = (take - 1) & rest {
				if b := near[(d+1)*t.sets+s|take]; b >= 0 {
					a := t.earliest(d, lo, min(hi, b), b, take)
					if a >= 0 && (near[at] < 0 || a < near[at]) {
						near[at] = a
					}
				}
				if take == 0 {
					break
				}
			}
		}
	}
	return near
}

// earliest returns the least a in [lo, hi] with [a, b) within the cap of
// device d, -1 if there is none.
func (t *task) earliest(d, lo, hi, b, take int) int {
	if lo > hi || t.peak(d, hi, b, take) > t.caps[d] {
		return -1
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if t.peak(d, mid, b, take) <= t.caps[d] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// step carries the sums of state (d, s) over device d, which takes the
// clusters in take.
func (sq *squares) step(d, s, take int) {
	from, to := sq.cuts[d*sq.sets+s], sq.cuts[(d+1)*sq.sets+s|take]
	if sq.quit || len(from.sums) == 0 || len(to.sums) == 0 || sq.peak(d, from.lo, from.lo, take) > sq.caps[d] {
		return
	}
	// The rows [lo, hi] are the cuts that some cut of from reaches.
	lo, hi := max(to.lo, from.lo), to.hi()
	if a := from.hi(); a < hi {
		hi = sq.farthest(d, a, max(lo, a), hi, take)
	}
	p := pass{squares: sq, d: d, take: take, from: from, to: to}
	p.scan(lo, hi)
}

// poll looks at the limits once in a while.
func (sq *squares) poll() {
	if sq.cells < sq.polls {
		return
	}
	sq.polls = sq.cells + 1<<14
	most := sq.run.cells()
	sq.rough = sq.rough || !sq.Additive && sq.cells > most
	sq.quit = sq.cells > divideFactor*most || sq.run.cancelled()
}

// trace walks back from the last cut along the least sums.
func (sq *squares) trace() placement {
	m := placement{cuts: make([]int, sq.k+1), groups: make([]uint64, sq.k)}
	b, s := sq.Items, sq.sets-1
	for d := sq.k - 1; d >= 0; d-- {
		m.cuts[d+1] = b
		least, bestA, bestTake := uint64(unreached), 0, 0
		for take := range sq.sets {
			if take&^s != 0 {
				continue
			}
			from := sq.cuts[d*sq.sets+s&^take]
			for a := min(from.hi(), b); a >= from.lo && len(from.sums) > 0; a-- {
				p := sq.peak(d, a, b, take)
				if p > sq.caps[d] {
					break
				}
				if sum := from.sums[a-from.lo] + sq.square(d, p); sum < least {
					least, bestA, bestTake = sum, a, take
				}
			}
		}
		m.groups[d] = sq.base[d] | sq.groups[bestTake]
		b, s = bestA, s&^bestTake
	}
	return m
}
