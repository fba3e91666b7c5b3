package planner

import "github.com/devmap-dev/devmap/planner/devicemap"

// trials bounds the exchanges that tidy tries: it runs after the time is up.
const trials = 10_000

// tidy exchanges items, and moves those that hold nothing, as long as fewer
// bytes cross and neither the largest share nor the sum of squares rises.
func (a *anySearch) tidy(m devicemap.Map) {
	send := newSender(a.sc.p)
	now := send.sent(m)
	classOf := a.sc.classOf()
	left := trials / (1 + len(m)/100)
	for improved := true; improved && left > 0; {
		improved = false
		for i := range a.sc.items {
			for j := range i {
				d, e := a.deviceOf(m, i), a.deviceOf(m, j)
				if d == e || a.sc.items[i].pin >= 0 || a.sc.items[j].pin >= 0 || len(a.sc.items[i].units) != len(a.sc.items[j].units) {
					continue
				}
				left--
				if left <= 0 {
					return
				}
				a.put(m, i, e)
				a.put(m, j, d)
				if sent := send.sent(m); sent < now && a.swaps(classOf[i], classOf[j], d, e) {
					now, improved = sent, true
					continue
				}
				a.put(m, i, d)
				a.put(m, j, e)
			}
		}
	}
}

func (a *anySearch) deviceOf(m devicemap.Map, i int) devicemap.Device {
	return m[a.sc.items[i].units[0]]
}

func (a *anySearch) put(m devicemap.Map, i int, d devicemap.Device) {
	for _, u := range a.sc.items[i].units {
		m[u] = d
	}
}

// swaps exchanges an item of class c on device d and one of class k on device
// e in the loads, if the map is then no worse; −1 is the class of what holds
// nothing.
func (a *anySearch) swaps(c, k int, d, e devicemap.Device) bool {
	if c == k {
		return true
	}
	if c < 0 || k < 0 {
		return false
	}
	from, to := a.loads[d], a.loads[e]
	was := a.squaresOf(from, to)
	v := move{from, to, c, k, 1, 1}
	v.apply(1)
	if a.squaresOf(from, to) <= was*(1+tolerance) {
		return true
	}
	v.apply(-1)
	return false
}

// classOf is the class of each item, −1 where it holds nothing.
func (s *scatter) classOf() []int {
	out := make([]int, len(s.items))
	for i := range out {
		out[i] = -1
	}
	for c := range s.classes {
		for _, i := range s.classes[c].items {
			out[i] = c
		}
	}
	return out
}
