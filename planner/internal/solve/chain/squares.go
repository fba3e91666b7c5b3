package chain

import (
	"math"
	"math/bits"
)

// even looks for the map with the least sum of squared shares among those within limit, the least
// largest share. It reports whether it found one and whether the sum is proved least.
//
// It is a dynamic program over the states of task, one layer per device, with a value for each cut
// that is on a map within the limit. Those cuts form one window per state, from the backward reach
// to the forward reach: the greedy map with shorter runs reaches any cut before the farthest.
//
// Squares are fixed-point numbers, multiples of 2^-52 of the square of limit (coarser past 1024
// devices). Sums are then exact in any order, equal shares on different devices tie, and results do
// not depend on the machine.
//
// Among ties, the last device gets the fewest groups (the least set as a number), then the fewest
// items. The device before it follows, and so on.
func (job *task) even(limits *run, limit Share) (placed placement, found, proved bool) {
	job.limit(limit)
	job.probe()
	sq := job.newSquares(limits, limit)
	if sq == nil {
		return placed, false, false
	}
	for device := range job.k {
		for set := range job.sets {
			rest := job.sets - 1 - set
			for take := rest; ; take = (take - 1) & rest {
				sq.step(device, set, take)
				if take == 0 {
					break
				}
			}
		}
		if sq.quit || limits.cancelled() {
			return placed, false, false
		}
		limits.report(Progress{Best: limit, Lower: limit, Done: device + 1, Total: job.k})
	}
	return sq.trace(), true, !sq.rough
}

// squares is the state of the dynamic program.
type squares struct {
	*task
	ruler
	cuts  []span // per state
	run   *run
	cells int64 // sums computed so far
	polls int64 // cells at the next check of the limits
	rough bool  // divide is used although it may not be exact
	quit  bool  // stopped, or out of cells
}

// ruler measures squared shares in fixed point.
type ruler struct {
	scale float64
	inv   []float64 // per device, 1/(budget*limit)
}

func newRuler(budgets []int64, limit Share) ruler {
	scale := ruler{scale: math.Ldexp(1, min(52, 62-bits.Len(uint(len(budgets))))), inv: make([]float64, len(budgets))}
	for device, budget := range budgets {
		if limit.Peak > 0 {
			scale.inv[device] = 1 / (float64(budget) * limit.Float())
		}
	}
	return scale
}

// square returns the squared share of a peak on device, in fixed point. The conversions keep the
// compiler from fusing the products with later operations.
func (scale *ruler) square(device int, peak int64) uint64 {
	x := float64(float64(peak) * scale.inv[device])
	return uint64(float64(x*x*scale.scale) + 0.5)
}

// span has the least sums for the cuts [lo, lo+len(sums)) of a state.
type span struct {
	lo   int
	sums []uint64
}

func (part span) hi() int { return part.lo + len(part.sums) - 1 }

// maxSums keeps the sums below 256 MiB.
const maxSums = 1 << 25

const unreached = math.MaxUint64

// newSquares computes the windows; nil if they have more than maxSums cuts.
func (job *task) newSquares(limits *run, limit Share) *squares {
	sq := &squares{task: job, run: limits, ruler: newRuler(job.Budgets, limit), cuts: make([]span, len(job.reach))}
	nearest := job.nearest()
	size := 0
	for i, far := range job.reach {
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
	for i, far := range job.reach {
		if near := nearest[i]; near >= 0 && near <= far {
			w := far - near + 1
			sq.cuts[i] = span{near, store[:w:w]}
			store = store[w:]
		}
	}
	sq.cuts[0].sums[0] = 0
	return sq
}

// nearest is the probe run backwards: for each state, the first cut from which the devices from d
// on can take the rest, -1 if there is none.
func (job *task) nearest() []int {
	near := make([]int, len(job.reach))
	for i := range near {
		near[i] = -1
	}
	near[len(near)-1] = job.Items
	for device := job.k - 1; device >= 0; device-- {
		for set := range job.sets {
			if !job.allows(device, set) {
				continue
			}
			at := device*job.sets + set
			lo, hi := job.window(device, set)
			rest := job.sets - 1 - set
			for take := rest; ; take = (take - 1) & rest {
				if b := near[(device+1)*job.sets+set|take]; b >= 0 {
					a := job.earliest(device, lo, min(hi, b), b, take)
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

// earliest returns the least a in [lo, hi] with [a, b) within the cap of a
// device, -1 if there is none.
func (job *task) earliest(device, lo, hi, b, take int) int {
	if lo > hi || job.peak(device, hi, b, take) > job.caps[device] {
		return -1
	}
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if job.peak(device, mid, b, take) <= job.caps[device] {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// step extends the sums of state (device, set) by device, which takes the clusters in take.
func (sq *squares) step(device, set, take int) {
	from, to := sq.cuts[device*sq.sets+set], sq.cuts[(device+1)*sq.sets+set|take]
	if sq.quit || len(from.sums) == 0 || len(to.sums) == 0 || sq.peak(device, from.lo, from.lo, take) > sq.caps[device] {
		return
	}
	// The rows [lo, hi] are the cuts that some cut of from reaches.
	lo, hi := max(to.lo, from.lo), to.hi()
	if a := from.hi(); a < hi {
		hi = sq.farthest(device, a, max(lo, a), hi, take)
	}
	p := pass{squares: sq, device: device, take: take, from: from, to: to}
	p.scan(lo, hi)
}

// poll checks the limits once in a while.
func (sq *squares) poll() {
	if sq.cells < sq.polls {
		return
	}
	sq.polls = sq.cells + 1<<14
	most := sq.run.cells()
	sq.rough = sq.rough || !sq.Additive && sq.cells > most
	sq.quit = sq.cells > divideFactor*most || sq.run.cancelled()
}

// trace follows the least sums back from the last cut.
func (sq *squares) trace() placement {
	placed := placement{cuts: make([]int, sq.k+1), groups: make([]uint64, sq.k)}
	b, set := sq.Items, sq.sets-1
	for device := sq.k - 1; device >= 0; device-- {
		placed.cuts[device+1] = b
		least, bestA, bestTake := uint64(unreached), 0, 0
		for take := range sq.sets {
			if take&^set != 0 {
				continue
			}
			from := sq.cuts[device*sq.sets+set&^take]
			for a := min(from.hi(), b); a >= from.lo && len(from.sums) > 0; a-- {
				peak := sq.peak(device, a, b, take)
				if peak > sq.caps[device] {
					break
				}
				if sum := from.sums[a-from.lo] + sq.square(device, peak); sum < least {
					least, bestA, bestTake = sum, a, take
				}
			}
		}
		placed.groups[device] = sq.base[device] | sq.groups[bestTake]
		b, set = bestA, set&^bestTake
	}
	return placed
}
