package anytime

import (
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// descend changes the map while that makes it better: one item to another
// device, a stretch of units with all that must stay with them, two items
// exchanged.
func (w *walk) descend() {
	for !w.stopped() && (w.moveItems() || w.moveStretches() || w.swapItems()) {
		continue
	}
}

// put moves an item that is not pinned.
func (w *walk) put(m devicemap.Map, i int, d devicemap.Device) {
	it := &w.problem.Items[i]
	if it.Device >= 0 {
		return
	}
	for _, u := range it.Units {
		m[u] = d
	}
}

// stretch moves the items of the units [a, b).
func (w *walk) stretch(m devicemap.Map, a, b int, d devicemap.Device) {
	for u := a; u < b; u++ {
		w.put(m, w.problem.ItemOf[u], d)
	}
}

func (w *walk) deviceOf(i int) devicemap.Device { return w.at[w.problem.Items[i].Units[0]] }

func (w *walk) moveItems() (moved bool) {
	for i := range w.problem.Items {
		for d := devicemap.Device(0); int(d) < len(w.units) && w.problem.Items[i].Device < 0; d++ {
			if w.stopped() {
				return moved
			}
			if d != w.deviceOf(i) && w.try(func(m devicemap.Map) { w.put(m, i, d) }) {
				moved = true
			}
		}
	}
	return moved
}

// everyLength is up to how many units all lengths of a stretch are tried;
// beyond, powers of two.
const everyLength = 64

func (w *walk) moveStretches() (moved bool) {
	n := len(w.at)
	for length := 2; length <= n; {
		for a := 0; a+length <= n; a++ {
			for d := range w.units {
				if w.stopped() {
					return moved
				}
				if w.try(func(m devicemap.Map) { w.stretch(m, a, a+length, devicemap.Device(d)) }) {
					moved = true
				}
			}
		}
		if length < everyLength {
			length++
		} else {
			length *= 2
		}
	}
	return moved
}

func (w *walk) swapItems() (moved bool) {
	for i := range w.problem.Items {
		for j := range i {
			if w.stopped() {
				return moved
			}
			d, e := w.deviceOf(i), w.deviceOf(j)
			if d == e || w.problem.Items[i].Device >= 0 || w.problem.Items[j].Device >= 0 {
				continue
			}
			if w.try(func(m devicemap.Map) { w.put(m, i, e); w.put(m, j, d) }) {
				moved = true
			}
		}
	}
	return moved
}

// kick moves a few items anywhere; false where that fits nowhere.
func (w *walk) kick() bool {
	const tries = 20
	for range tries {
		copy(w.next, w.at)
		for range 1 + w.rng.IntN(3) {
			u, d := w.rng.IntN(len(w.at)), devicemap.Device(w.rng.IntN(len(w.units)))
			w.stretch(w.next, u, min(len(w.at), u+1+w.rng.IntN(len(w.at))), d)
		}
		if _, fits := w.share(w.next); fits {
			copy(w.at, w.next)
			w.score = w.scoreOf(w.at)
			return true
		}
	}
	return false
}
