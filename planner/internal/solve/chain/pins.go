package chain

import (
	"cmp"
	"slices"
)

// cluster is one or more groups that must share a device. The device is not fixed.
type cluster struct {
	groups      uint64
	id          int // the lowest group, for messages
	first, last int // the items [first, last] follow it; first > last: none
}

func (group cluster) follows() bool { return group.first <= group.last }

// instance is a problem with its pins resolved. Fixed parts are in the windows of the cuts and in
// base, free parts in clusters. At least one map exists.
type instance struct {
	*Problem
	minCut, maxCut []int    // window of cut d, the first item of device d
	base           []uint64 // groups fixed on each device
	clusters       []cluster
}

// claim says that an item must be on a device.
type claim struct{ item, device, group int }

func newInstance(problem *Problem) (*instance, error) {
	k := len(problem.Budgets)
	in := &instance{Problem: problem, base: make([]uint64, k)}
	claims, err := in.claims()
	if err != nil {
		return nil, err
	}
	in.minCut, in.maxCut = make([]int, k+1), make([]int, k+1)
	for device := range in.maxCut {
		in.maxCut[device] = problem.Items
	}
	in.maxCut[0], in.minCut[k] = 0, problem.Items
	for _, pinned := range claims {
		clamp(in.minCut, in.maxCut, pinned.device, pinned.item, pinned.item)
	}
	for _, group := range in.freeClusters() {
		device, err := group.claimed(claims)
		switch {
		case err != nil:
			return nil, err
		case device >= 0:
			in.base[device] |= group.groups
			clamp(in.minCut, in.maxCut, device, group.first, group.last)
		default:
			in.clusters = append(in.clusters, group)
		}
	}
	return in, nil
}

// clamp narrows the windows to maps with the items [first, last] on a device: cuts up to the device
// are before them, later cuts after.
func clamp(minCut, maxCut []int, device, first, last int) {
	for cut := range minCut {
		if cut <= device {
			maxCut[cut] = min(maxCut[cut], first)
		} else {
			minCut[cut] = max(minCut[cut], last+1)
		}
	}
}

// claims lists the items that pins and pinned groups fix, in item order, and moves the pinned
// groups to base. Devices may not decrease along the chain.
func (in *instance) claims() ([]claim, error) {
	var cs []claim
	for i, device := range in.Pins {
		if device >= 0 {
			cs = append(cs, claim{i, device, -1})
		}
	}
	for group, device := range in.GroupPins {
		if device < 0 {
			continue
		}
		in.base[device] |= 1 << group
		for _, i := range in.followers(group) {
			cs = append(cs, claim{i, device, group})
		}
	}
	slices.SortStableFunc(cs, func(a, b claim) int { return cmp.Compare(a.item, b.item) })
	for i := 1; i < len(cs); i++ {
		before, after := cs[i-1], cs[i]
		if before.device > after.device || before.item == after.item && before.device != after.device {
			return nil, conflict(before, after, -1)
		}
	}
	return cs, nil
}

func conflict(a, b claim, across int) error {
	return &ConflictError{
		Items:   [2]int{a.item, b.item},
		Devices: [2]int{a.device, b.device},
		Groups:  [2]int{a.group, b.group},
		Across:  across,
	}
}

func (in *instance) followers(group int) []int {
	if in.Follow == nil {
		return nil
	}
	return in.Follow[group]
}

// freeClusters joins free groups if the ranges of their following items overlap: runs are
// consecutive, so such groups share a device. The resulting clusters have disjoint ranges.
func (in *instance) freeClusters() []cluster {
	var loose, bound []cluster
	pinned := uint64(0)
	for _, groups := range in.base {
		pinned |= groups
	}
	for g := range in.Groups {
		if pinned>>g&1 != 0 {
			continue
		}
		group := cluster{groups: 1 << g, id: g, first: 0, last: -1}
		if followers := in.followers(g); len(followers) > 0 {
			group.first, group.last = slices.Min(followers), slices.Max(followers)
			bound = append(bound, group)
		} else {
			loose = append(loose, group)
		}
	}
	slices.SortStableFunc(bound, func(a, b cluster) int { return cmp.Compare(a.first, b.first) })
	var joined []cluster
	for _, group := range bound {
		if end := len(joined) - 1; end >= 0 && group.first <= joined[end].last {
			j := &joined[end]
			j.groups |= group.groups
			j.id = min(j.id, group.id)
			j.last = max(j.last, group.last)
			continue
		}
		joined = append(joined, group)
	}
	loose = append(loose, joined...)
	slices.SortFunc(loose, func(a, b cluster) int { return cmp.Compare(a.id, b.id) })
	return loose
}

// claimed returns the device of the claims within the cluster's range, -1 if there are none.
func (group cluster) claimed(claims []claim) (int, error) {
	var in *claim
	for i, cl := range claims {
		switch {
		case cl.item < group.first || cl.item > group.last:
		case in == nil:
			in = &claims[i]
		case in.device != cl.device:
			return 0, conflict(*in, cl, group.id)
		}
	}
	if in == nil {
		return -1, nil
	}
	return in.device, nil
}
