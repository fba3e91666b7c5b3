package anymemory

import (
	"encoding/binary"
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
	if !q.gaveUp && len(q.failed) < mostFailed {
		q.failed[key] = true
	}
	return false
}

// idle reports whether the devices from order[i] on may stay idle: the
// input's holds the outputs all the same.
func (q *packing) idle(i int) bool {
	for _, d := range q.order[i:] {
		if q.loads[d].need() > q.caps[d] {
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
	if j == len(q.classes) {
		return l.need() <= q.caps[l.device] && !q.room(l) && q.search(i+1)
	}
	c := q.classes[j]
	most := q.mostOf(l, c)
	least := 0
	if l.allows(c) && q.a.sc.classes[c].pin >= 0 {
		least = q.left[c] // pinned here: it cannot go elsewhere
	}
	if q.first(i, j) {
		least = max(least, 1)
	}
	for n := most; n >= least && !q.gaveUp; n-- {
		l.set(c, n)
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
	l.set(c, 0)
	return false
}

// mostOf is the most of a class that fits on a device beside what it holds.
func (q *packing) mostOf(l *load, c int) int {
	if !l.allows(c) {
		return 0
	}
	lo, hi := 0, q.left[c]+1 // lo fits, hi does not
	for lo+1 < hi {
		mid := (lo + hi) / 2
		l.set(c, mid)
		if l.need() <= q.caps[l.device] {
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
	for _, c := range q.classes[:j] {
		if q.left[c] > 0 || q.loads[q.order[i]].counts[c] > 0 {
			return false
		}
	}
	like := q.a.sc.Bins[q.order[i]].Like
	for _, d := range q.order[i:] {
		if q.a.sc.Bins[d].Like != like {
			return false
		}
	}
	return q.left[q.classes[j]] > 0
}

// takesAll reports that n of the class and all that is left of the classes
// after it fit together: then fewer than n need not be tried.
func (q *packing) takesAll(l *load, j, n int) bool {
	c := q.classes[j]
	was := l.counts[c]
	l.set(c, n)
	for _, e := range q.classes[j+1:] {
		if l.allows(e) {
			l.set(e, q.left[e])
		}
	}
	fits := l.need() <= q.caps[l.device]
	for _, e := range q.classes[j+1:] {
		l.set(e, 0)
	}
	l.set(c, was)
	return fits
}

// room reports that an item that is left would fit beside what a device has.
func (q *packing) room(l *load) bool {
	for c, n := range q.left {
		if n == 0 || !l.allows(c) {
			continue
		}
		l.add(c, 1)
		fits := l.need() <= q.caps[l.device]
		l.add(c, -1)
		if fits {
			return true
		}
	}
	return false
}
