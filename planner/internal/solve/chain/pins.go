package chain

import (
	"cmp"
	"slices"
)

// cluster is one or more groups that must share a device, free to be placed.
type cluster struct {
	groups      uint64
	id          int // the lowest group, for messages
	first, last int // the items [first, last] go with it; first > last: none
}

func (c cluster) follows() bool { return c.first <= c.last }

// instance is a problem with its pins worked out: what is fixed lies in the
// windows of the cuts and in base, what is free in clusters. Some map exists.
type instance struct {
	*Problem
	minCut, maxCut []int    // window of cut d, the first item of device d
	base           []uint64 // groups fixed on each device
	clusters       []cluster
}

// claim says that an item must sit on a device.
type claim struct{ item, device, group int }

func newInstance(p *Problem) (*instance, error) {
	k := len(p.Budgets)
	in := &instance{Problem: p, base: make([]uint64, k)}
	claims, err := in.claims()
	if err != nil {
		return nil, err
	}
	in.minCut, in.maxCut = make([]int, k+1), make([]int, k+1)
	for d := range in.maxCut {
		in.maxCut[d] = p.Items
	}
	in.maxCut[0], in.minCut[k] = 0, p.Items
	for _, c := range claims {
		clamp(in.minCut, in.maxCut, c.device, c.item, c.item)
	}
	for _, c := range in.freeClusters() {
		d, err := c.claimed(claims)
		switch {
		case err != nil:
			return nil, err
		case d >= 0:
			in.base[d] |= c.groups
			clamp(in.minCut, in.maxCut, d, c.first, c.last)
		default:
			in.clusters = append(in.clusters, c)
		}
	}
	return in, nil
}

// clamp narrows the windows to the maps that put the items [first, last] on
// device d: the cuts up to d lie before them, the later ones after.
func clamp(minCut, maxCut []int, d, first, last int) {
	for e := range minCut {
		if e <= d {
			maxCut[e] = min(maxCut[e], first)
		} else {
			minCut[e] = max(minCut[e], last+1)
		}
	}
}

// claims lists what pins and pinned groups fix, in item order, and moves the
// pinned groups to base. Devices may not go down along the chain.
func (in *instance) claims() ([]claim, error) {
	var cs []claim
	for i, d := range in.Pins {
		if d >= 0 {
			cs = append(cs, claim{i, d, -1})
		}
	}
	for g, d := range in.GroupPins {
		if d < 0 {
			continue
		}
		in.base[d] |= 1 << g
		for _, i := range in.followers(g) {
			cs = append(cs, claim{i, d, g})
		}
	}
	slices.SortStableFunc(cs, func(a, b claim) int { return cmp.Compare(a.item, b.item) })
	for i := 1; i < len(cs); i++ {
		a, b := cs[i-1], cs[i]
		if a.device > b.device || a.item == b.item && a.device != b.device {
			return nil, conflict(a, b, -1)
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

func (in *instance) followers(g int) []int {
	if in.Follow == nil {
		return nil
	}
	return in.Follow[g]
}

// freeClusters joins the groups that no pin fixes where the stretches of
// items that follow them overlap: runs are consecutive, so such groups share
// a device. What is left has disjoint stretches.
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
		c := cluster{groups: 1 << g, id: g, first: 0, last: -1}
		if f := in.followers(g); len(f) > 0 {
			c.first, c.last = slices.Min(f), slices.Max(f)
			bound = append(bound, c)
		} else {
			loose = append(loose, c)
		}
	}
	slices.SortStableFunc(bound, func(a, b cluster) int { return cmp.Compare(a.first, b.first) })
	var joined []cluster
	for _, c := range bound {
		if end := len(joined) - 1; end >= 0 && c.first <= joined[end].last {
			j := &joined[end]
			j.groups |= c.groups
			j.id = min(j.id, c.id)
			j.last = max(j.last, c.last)
			continue
		}
		joined = append(joined, c)
	}
	loose = append(loose, joined...)
	slices.SortFunc(loose, func(a, b cluster) int { return cmp.Compare(a.id, b.id) })
	return loose
}

// claimed returns the device of the claims inside the cluster's stretch, -1
// if there are none.
func (c cluster) claimed(claims []claim) (int, error) {
	var in *claim
	for i, cl := range claims {
		switch {
		case cl.item < c.first || cl.item > c.last:
		case in == nil:
			in = &claims[i]
		case in.device != cl.device:
			return 0, conflict(*in, cl, c.id)
		}
	}
	if in == nil {
		return -1, nil
	}
	return in.device, nil
}
