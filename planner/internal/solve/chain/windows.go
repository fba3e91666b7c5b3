package chain

// task is an instance with each cluster fixed on a device, free, or left out.
//
// A state (d, s) says that the devices before d are done and hold exactly the
// free clusters in s. Items that follow a cluster lie before cut d if it is in
// s and behind it otherwise, so each state has one window of cuts and any path
// of states inside the windows satisfies pins and followers. Windows rise with
// d and s, which the greedy argument of probe relies on.
type task struct {
	*instance
	k, sets        int // devices; subsets of the free clusters
	base           []uint64
	groups         []uint64 // groups of each subset
	minCut, maxCut []int    // per device boundary
	minSet, maxSet []int    // per subset

	caps []int64 // largest peak per device under the limit of the last probe

	reach []int // farthest cut per state, -1: none
	took  []int // the subset the last device took to get there
}

// Where newTask puts a cluster, if not on a device.
const (
	free   = -1
	absent = -2
)

func newTask(in *instance, where []int) *task {
	k := len(in.Budgets)
	t := &task{
		instance: in, k: k, caps: make([]int64, k),
		base:   append([]uint64(nil), in.base...),
		minCut: append([]int(nil), in.minCut...),
		maxCut: append([]int(nil), in.maxCut...),
		groups: []uint64{0}, minSet: []int{0}, maxSet: []int{in.Items},
	}
	for i, c := range in.clusters {
		switch d := where[i]; d {
		case absent:
		case free:
			t.addFree(c)
		default:
			t.base[d] |= c.groups
			if c.follows() {
				clamp(t.minCut, t.maxCut, d, c.first, c.last)
			}
		}
	}
	t.sets = len(t.groups)
	t.reach = make([]int, (k+1)*t.sets)
	t.took = make([]int, (k+1)*t.sets)
	return t
}

// addFree doubles the subsets: those so far lack c, their copies have it.
func (t *task) addFree(c cluster) {
	for s := range len(t.groups) {
		lo, hi := t.minSet[s], t.maxSet[s]
		if c.follows() {
			t.maxSet[s] = min(hi, c.first)
			lo = max(lo, c.last+1)
		}
		t.groups = append(t.groups, t.groups[s]|c.groups)
		t.minSet = append(t.minSet, lo)
		t.maxSet = append(t.maxSet, hi)
	}
}

// window returns the cuts state (d, s) allows, none if lo > hi.
func (t *task) window(d, s int) (lo, hi int) {
	return max(t.minCut[d], t.minSet[s]), min(t.maxCut[d], t.maxSet[s])
}

// allows is false for the states that no complete map passes.
func (t *task) allows(d, s int) bool {
	if d == 0 && s != 0 || d == t.k && s != t.sets-1 {
		return false
	}
	lo, hi := t.window(d, s)
	return lo <= hi
}

// peak is Peak with the free clusters in take and the fixed ones.
func (t *task) peak(d, a, b, take int) int64 {
	return t.Peak(d, a, b, t.base[d]|t.groups[take])
}

// placement is a complete map.
type placement struct {
	cuts   []int
	groups []uint64 // groups on each device, fixed ones included
}

// share returns the largest share of the map and the first device that has it.
func (t *task) share(m placement) (worst Share, device int) {
	for d, b := range t.Budgets {
		s := Share{t.Peak(d, m.cuts[d], m.cuts[d+1], m.groups[d]), b}
		if d == 0 || worst.less(s) {
			worst, device = s, d
		}
	}
	return worst, device
}
