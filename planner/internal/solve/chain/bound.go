package chain

import "math"

// Bound names the argument behind a lower bound.
type Bound string

// The arguments in order of preference.
const (
	BoundUnit    Bound = "largest unit" // one item or group alone on its best device
	BoundAverage Bound = "average"      // the whole model divided by all budgets
	BoundSearch  Bound = "search"       // probes proved every smaller share infeasible
)

// bounds holds the bounds known before the search.
type bounds struct {
	unit  Share
	total int64 // least sum of all peaks; 0 unless Additive
	sum   int64 // of the budgets
	whole int64 // least peak of the whole chain on one device
}

func (known bounds) lower() Share { return MaxShare(known.unit, Share{known.total, known.sum}) }

// guess returns a share that greedy reaches with equal budgets, no pins and an additive Peak. A
// device that cannot take its next item then has more than the average. In other cases it is only a
// start value.
func (known bounds) guess() Share {
	const one = 1 << 32
	start := known.unit.Float() + float64(max(known.total, known.whole))/float64(known.sum)
	if start >= math.MaxInt64/one {
		return Share{math.MaxInt64, 1}
	}
	return Share{int64(math.Ceil(start * one)), one}
}

// name returns the argument that proves a share as a bound: the first one that reaches it. The
// average argument is in whole bytes: the largest peaks below the share do not add up to the total.
func (known bounds) name(share Share, budgets []int64) Bound {
	if !known.unit.less(share) {
		return BoundUnit
	}
	free := int64(0)
	for _, budget := range budgets {
		free = plus(free, max(share.Below(budget), 0))
	}
	if free < known.total {
		return BoundAverage
	}
	return BoundSearch
}

// plus adds two non-negative numbers, limited to the largest int64. A limited bound is still a
// bound.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// bounds takes O(n k) Peak calls, where k counts the devices that differ from the device before. It
// ends with the run, and the bounds hold for the part seen so far. Clusters left out of the task
// count for the unit bound only.
func (job *task) bounds(limits *run) bounds {
	known := bounds{unit: Share{0, 1}, whole: math.MaxInt64}
	empty := make([]int64, job.k)
	for device, budget := range job.Budgets {
		empty[device] = job.peak(device, 0, 0, 0)
		known.unit = MaxShare(known.unit, Share{empty[device], budget})
		known.whole = min(known.whole, job.peak(device, 0, job.Items, 0))
		known.sum += budget
	}
	for _, group := range job.clusters {
		known.unit = MaxShare(known.unit, job.alone(group))
	}
	items := int64(0)
	lo, hi := 0, 0 // the devices that the windows allow for item i
	other := job.others()
	const often = 1 << 16 // peaks between two checks of the limits
	looked := 0
	for i := range job.Items {
		if looked >= often {
			if looked = 0; limits.ctx.Err() != nil {
				break
			}
		}
		for job.maxCut[lo+1] <= i {
			lo++
		}
		for hi+1 < job.k && job.minCut[hi+1] <= i {
			hi++
		}
		best, least := Share{math.MaxInt64, 1}, int64(math.MaxInt64)
		for device := lo; device <= hi; device = other[device] {
			looked++
			peak := job.peak(device, i, i+1, 0)
			if share := (Share{peak, job.Budgets[device]}); share.less(best) {
				best = share
			}
			least = min(least, peak-empty[device])
		}
		known.unit = MaxShare(known.unit, best)
		items = plus(items, least)
	}
	if job.Additive {
		known.total = plus(items, job.leastEmpty())
	}
	return known
}

// others returns, for each device, the next device of another class.
func (job *task) others() []int {
	next := make([]int, job.k)
	for device := job.k - 1; device >= 0; device-- {
		next[device] = device + 1
		if job.Class != nil && device+1 < job.k && job.Class[device] == job.Class[device+1] && job.base[device] == job.base[device+1] {
			next[device] = next[device+1]
		}
	}
	return next
}

// alone returns the least share of a device with a group and its followers.
func (job *task) alone(group cluster) Share {
	best := Share{math.MaxInt64, 1}
	for device, budget := range job.Budgets {
		if group.follows() && (job.minCut[device] > group.first || job.maxCut[device+1] <= group.last) {
			continue
		}
		share := Share{job.Peak(device, group.first, group.last+1, job.base[device]|group.groups), budget}
		if share.less(best) {
			best = share
		}
	}
	return best
}

// leastEmpty returns the least sum of the devices' peaks without items, over all placements of the
// free clusters. Peaks of groups may not add up, so it tries every subset on every device.
func (job *task) leastEmpty() int64 {
	sums := make([]int64, job.sets)
	for set := range sums {
		sums[set] = math.MaxInt64
	}
	sums[0] = 0
	for device := range job.k {
		// Downwards, so that sums[s&^take] still belongs to the device before.
		for set := job.sets - 1; set >= 0; set-- {
			best := int64(math.MaxInt64)
			for take := set; ; take = (take - 1) & set {
				best = min(best, plus(sums[set&^take], job.peak(device, 0, 0, take)))
				if take == 0 {
					break
				}
			}
			sums[set] = best
		}
	}
	return sums[job.sets-1]
}
