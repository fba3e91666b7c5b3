package chain

import "slices"

// sweeps limits the time of the descent. It usually ends after two or three sweeps, when a sweep
// gains nothing.
const sweeps = 8

// descend places more clusters than a probe can leave free at once. It first solves with the
// largest few free and the others left out; that bound holds for the whole problem. Then it adds
// the others one by one, each where the largest share rises least, and moves single clusters as
// long as that helps. It cuts the chain again, exactly, at every step. It returns the task with
// every cluster fixed. This is a heuristic unless the value meets the bound.
func (in *instance) descend(limits *run) (*task, incumbent, bounds) {
	order := make([]int, len(in.clusters))
	where := make([]int, len(in.clusters))
	for i := range order {
		order[i], where[i] = i, absent
	}
	bare := newTask(in, where)
	slices.SortStableFunc(order, func(i, j int) int {
		return bare.alone(in.clusters[j]).Cmp(bare.alone(in.clusters[i]))
	})
	heavy := order[:limits.freeGroups()]
	for _, i := range heavy {
		where[i] = free
	}
	job := newTask(in, where)
	known := job.bounds(limits)
	inc := job.seed(limits, known.lower(), known.guess())
	job.bisect(limits, &inc)
	lower := inc.lower
	for _, i := range heavy {
		where[i] = inc.deviceOf(in.clusters[i])
	}
	for _, i := range order[len(heavy):] {
		where[i] = free
		job = newTask(in, where)
		inc = job.seed(limits, lower, inc.value)
		job.bisect(limits, &inc)
		where[i] = inc.deviceOf(in.clusters[i])
	}
	for gained, sweep := true, 0; gained && sweep < sweeps; sweep++ {
		gained = false
		for _, i := range order {
			if !lower.less(inc.value) || limits.stop() {
				break
			}
			where[i] = free
			job = newTask(in, where)
			try := inc
			try.lower = lower
			job.undercut(inc.value)
			if job.improve(limits, &try) {
				job.bisect(limits, &try)
				inc, gained = try, true
			}
			where[i] = inc.deviceOf(in.clusters[i])
		}
	}
	inc.lower = lower
	return newTask(in, where), inc, known
}

func (placed placement) deviceOf(group cluster) int {
	return slices.IndexFunc(placed.groups, func(g uint64) bool { return g&group.groups == group.groups })
}
