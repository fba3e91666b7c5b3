package anymemory

import (
	"encoding/binary"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
)

// search fills the devices from order[i] on.
func (q *packing) search(i int) bool {
	empty := true
	for _, n := range q.left {
		empty = empty && n == 0
	}
	switch {
	case empty:
		return q.idle(i)
	case i == len(q.order) || q.spent() || q.unfit(i) >= 0:
		return false
	}
	key := q.key(i)
	if q.failed[key] {
		return false
	}
	if q.fill(i, 0) {
		return true
	}
	if !q.gaveUp && len(q.failed) < maxFailed {
		q.failed[key] = true
	}
	return false
}

// idle reports whether the devices from order[i] on may stay idle: the
// input's holds the outputs all the same.
func (q *packing) idle(i int) bool {
	for _, d := range q.order[i:] {
		if q.loads[d].Need() > q.caps[d] {
			return false
		}
	}
	return true
}

func (q *packing) key(i int) string {
	key := binary.AppendUvarint(make([]byte, 0, 2+len(q.left)), uint64(i))
	for _, n := range q.left {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return string(key)
}

// fill chooses how many of the class classes[j] the device order[i] takes,
// then of the classes after it, the most first.
func (q *packing) fill(i, j int) bool {
	l := q.loads[q.order[i]]
	if j == len(q.kinds) {
		return l.Need() <= q.caps[l.Device] && !q.takesMore(l) && q.search(i+1)
	}
	c := q.kinds[j]
	most := q.mostOf(l, c)
	least := 0
	if l.Allows(c) && q.under.problem.Kinds[c].Pin >= 0 {
		least = q.left[c] // pinned here: it cannot go elsewhere
	}
	if q.first(i, j) {
		least = max(least, 1)
	}
	for n := most; n >= least && !q.gaveUp; n-- {
		l.Set(c, n)
		if n < most && q.takesAll(l, j, n+1) {
			continue
		}
		q.left[c] -= n
		done := !q.spent() && q.fill(i, j+1)
		q.left[c] += n
		if done {
			return true
		}
	}
	l.Set(c, 0)
	return false
}

// mostOf is the most of a class that fits on a device beside what it holds.
func (q *packing) mostOf(l *anywhere.Load, c int) int {
	if !l.Allows(c) {
		return 0
	}
	lo, hi := 0, q.left[c]+1 // lo fits, hi does not
	for lo+1 < hi {
		mid := (lo + hi) / 2
		l.Set(c, mid)
		if l.Need() <= q.caps[l.Device] {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// first reports that device order[i] must hold one of class classes[j]: it is
// the largest that is left, and all devices that are left are alike.
func (q *packing) first(i, j int) bool {
	for _, c := range q.kinds[:j] {
		if q.left[c] > 0 || q.loads[q.order[i]].Counts[c] > 0 {
			return false
		}
	}
	like := q.under.problem.Devices[q.order[i]].Like
	for _, d := range q.order[i:] {
		if q.under.problem.Devices[d].Like != like {
			return false
		}
	}
	return q.left[q.kinds[j]] > 0
}

// takesAll reports that n of the class and all that is left of the classes
// after it fit together: then fewer than n need not be tried.
func (q *packing) takesAll(l *anywhere.Load, j, n int) bool {
	c := q.kinds[j]
	was := l.Counts[c]
	l.Set(c, n)
	for _, e := range q.kinds[j+1:] {
		if l.Allows(e) {
			l.Set(e, q.left[e])
		}
	}
	fits := l.Need() <= q.caps[l.Device]
	for _, e := range q.kinds[j+1:] {
		l.Set(e, 0)
	}
	l.Set(c, was)
	return fits
}

// takesMore reports that an item that is left would fit beside what a device has.
func (q *packing) takesMore(l *anywhere.Load) bool {
	for c, n := range q.left {
		if n == 0 || !l.Allows(c) {
			continue
		}
		l.Add(c, 1)
		fits := l.Need() <= q.caps[l.Device]
		l.Add(c, -1)
		if fits {
			return true
		}
	}
	return false
}
