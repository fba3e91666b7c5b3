package chaintime

import (
	"math"
)

// path is one dynamic program: the chain's items on devices in an order, with
// the groups fixed on devices.
type path struct {
	*fixedPoint
	stops  []stop
	groups []int    // device of each group
	base   []uint64 // groups of each device
	fixed  cost     // of the groups' units and of what passes between them
	sums   [][]cost // prefix sums of items by device
	barred [][]int  // prefix counts of the items that may not be on a device
	held   []int64  // the groups' update by device
	grown  [][]int64
	lo     [][]int // by device and end, the first item from which a run fits in memory
}

// newPath sums the costs up; false where two groups are not joined by a link
// that they need.
func (t *fixedPoint) newPath(stops []stop, groups []int) (*path, bool) {
	p := &path{fixedPoint: t, stops: stops, groups: groups, base: make([]uint64, t.devices), held: make([]int64, t.devices)}
	for g, d := range groups {
		p.base[d] |= 1 << g
	}
	if !p.fix() {
		return nil, false
	}
	p.sums, p.barred, p.grown = make([][]cost, t.devices), make([][]int, t.devices), make([][]int64, t.devices)
	for d := range t.devices {
		p.sum(d)
	}
	return p, true
}

// groupDevice is the device of unit u's group, -1 for a unit of the chain and
// outside the model.
func (p *path) groupDevice(u int) int {
	if u < 0 || u >= len(p.peaks.GroupOf) || p.peaks.GroupOf[u] < 0 {
		return -1
	}
	return p.groups[p.peaks.GroupOf[u]]
}

func (p *path) fix() bool {
	for u := range p.peaks.GroupOf {
		d := p.groupDevice(u)
		if d < 0 {
			continue
		}
		p.fixed.time += p.unit[d][u]
		p.held[d] += p.update[d][u]
		if next := p.groupDevice(u + 1); next >= 0 {
			c, ok := p.crossing(d, next, u)
			if !ok {
				return false
			}
			p.fixed = p.fixed.plus(c)
		}
	}
	return true
}

// sum makes a device's prefix sums: its units, and what passes between them
// and the groups' units beside them in the model.
func (p *path) sum(d int) {
	sums, barred, grown := make([]cost, p.items+1), make([]int, p.items+1), make([]int64, p.items+1)
	for i := range p.items {
		c, bar, up := cost{}, p.bars(i, d), int64(0)
		for _, u := range p.peaks.Order[p.peaks.Start[i]:p.peaks.Start[i+1]] {
			c.time += p.unit[d][u]
			up += p.update[d][u]
			if before := p.groupDevice(u - 1); before >= 0 {
				x, ok := p.crossing(before, d, u-1)
				c, bar = c.plus(x), bar || !ok
			}
			if after := p.groupDevice(u + 1); after >= 0 {
				x, ok := p.crossing(d, after, u)
				c, bar = c.plus(x), bar || !ok
			}
		}
		sums[i+1], barred[i+1], grown[i+1] = sums[i].plus(c), barred[i], grown[i]+up
		if bar {
			barred[i+1]++
		}
	}
	p.sums[d], p.barred[d], p.grown[d] = sums, barred, grown
}

// bars reports an item that its pin, or a group that it follows, keeps off a
// device.
func (p *path) bars(item, d int) bool {
	if at := p.peaks.Pins[item]; at >= 0 && at != d {
		return true
	}
	for g, items := range p.peaks.Follow {
		for _, i := range items {
			if i == item && p.groups[g] != d {
				return true
			}
		}
	}
	return false
}

// within finds what fits the caps; false where the groups alone do not.
func (p *path) within(caps []int64) bool {
	p.lo = make([][]int, p.devices)
	for d := range p.lo {
		if p.base[d] != 0 && p.peaks.Peak(d, 0, 0, p.base[d]) > caps[d] {
			return false
		}
		lo := make([]int, p.items+1)
		a := 0
		for b := 1; b <= p.items; b++ {
			for a < b && (p.barred[d][b] > p.barred[d][a] || p.peaks.Peak(d, a, b, p.base[d]) > caps[d]) {
				a++
			}
			lo[b] = a
		}
		p.lo[d] = lo
	}
	return true
}

// least is the time of a map that no path is below, but for the update.
func (p *path) least() int64 {
	total := p.fixed.time
	for i := range p.items {
		best := int64(math.MaxInt64)
		for d := range p.devices {
			if p.barred[d][i+1] == p.barred[d][i] {
				best = min(best, p.sums[d][i+1].time-p.sums[d][i].time)
			}
		}
		if best == math.MaxInt64 {
			return best
		}
		total += best
	}
	return total
}
