package chain

import "slices"

// task is an instance with each cluster fixed on a device, free, or left out.
//
// In a state (d, s), the devices before d are done and have exactly the free clusters in s. Items
// that follow a cluster are before cut d if it is in s, and after it otherwise. So each state has
// one window of cuts, and any path of states inside the windows satisfies pins and followers.
// Windows rise with d and s, which the greedy argument of probe needs.
type task struct {
	*instance
	k, sets        int // devices; subsets of the free clusters
	base           []uint64
	groups         []uint64 // groups of each subset
	minCut, maxCut []int    // per device boundary
	minSet, maxSet []int    // per subset

	where []int // of each cluster, the argument of newTask

	caps []int64 // largest peak per device under the limit of the last probe

	reach []int // farthest cut per state, -1: none
	took  []int // the subset that the last device took
}

// newTask puts a cluster on a device, or in one of these two places.
const (
	free   = -1
	absent = -2
)

// allFree returns places that leave every cluster free.
func (in *instance) allFree() []int { return slices.Repeat([]int{free}, len(in.clusters)) }

func newTask(in *instance, where []int) *task {
	k := len(in.Budgets)
	job := &task{
		instance: in, k: k, where: where, caps: make([]int64, k),
		base:   append([]uint64(nil), in.base...),
		minCut: append([]int(nil), in.minCut...),
		maxCut: append([]int(nil), in.maxCut...),
		groups: []uint64{0}, minSet: []int{0}, maxSet: []int{in.Items},
	}
	for i, group := range in.clusters {
		switch device := where[i]; device {
		case absent:
		case free:
			job.addFree(group)
		default:
			job.base[device] |= group.groups
			if group.follows() {
				clamp(job.minCut, job.maxCut, device, group.first, group.last)
			}
		}
	}
	job.sets = len(job.groups)
	job.reach = make([]int, (k+1)*job.sets)
	job.took = make([]int, (k+1)*job.sets)
	return job
}

// addFree doubles the subsets: the old ones lack the group, their copies have it.
func (job *task) addFree(group cluster) {
	for set := range len(job.groups) {
		lo, hi := job.minSet[set], job.maxSet[set]
		if group.follows() {
			job.maxSet[set] = min(hi, group.first)
			lo = max(lo, group.last+1)
		}
		job.groups = append(job.groups, job.groups[set]|group.groups)
		job.minSet = append(job.minSet, lo)
		job.maxSet = append(job.maxSet, hi)
	}
}

// window returns the cuts that state (device, set) allows, none if lo > hi.
func (job *task) window(device, set int) (lo, hi int) {
	return max(job.minCut[device], job.minSet[set]), min(job.maxCut[device], job.maxSet[set])
}

// allows is false for states that no complete map passes.
func (job *task) allows(device, set int) bool {
	if device == 0 && set != 0 || device == job.k && set != job.sets-1 {
		return false
	}
	lo, hi := job.window(device, set)
	return lo <= hi
}

// peak returns Peak with the fixed clusters and the free ones in take.
func (job *task) peak(device, a, b, take int) int64 {
	return job.Peak(device, a, b, job.base[device]|job.groups[take])
}

// placement is a complete map.
type placement struct {
	cuts   []int
	groups []uint64 // groups on each device, fixed ones included
}

// share returns the largest share of the map and the first device that has it.
func (job *task) share(placed placement) (worst Share, device int) {
	for at, budget := range job.Budgets {
		share := Share{job.Peak(at, placed.cuts[at], placed.cuts[at+1], placed.groups[at]), budget}
		if at == 0 || worst.less(share) {
			worst, device = share, at
		}
	}
	return worst, device
}
