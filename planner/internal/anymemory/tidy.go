package anymemory

import (
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// trials bounds the exchanges that tidy tries: it runs after the time is up.
const trials = 10_000

// tidy exchanges items, and moves those that hold nothing, as long as fewer
// bytes cross and neither the largest share nor the sum of squares rises.
func (a *search) tidy(m devicemap.Map) {
	send := instance.NewSender(a.problem.In)
	now := send.Sent(m)
	classOf := a.problem.KindOf()
	left := trials / (1 + len(m)/100)
	for improved := true; improved && left > 0; {
		improved = false
		for i := range a.problem.Items {
			for j := range i {
				d, e := a.deviceOf(m, i), a.deviceOf(m, j)
				if d == e || a.problem.Items[i].Device >= 0 || a.problem.Items[j].Device >= 0 || len(a.problem.Items[i].Units) != len(a.problem.Items[j].Units) {
					continue
				}
				left--
				if left <= 0 {
					return
				}
				a.put(m, i, e)
				a.put(m, j, d)
				if sent := send.Sent(m); sent < now && a.swaps(classOf[i], classOf[j], d, e) {
					now, improved = sent, true
					continue
				}
				a.put(m, i, d)
				a.put(m, j, e)
			}
		}
	}
}

func (a *search) deviceOf(m devicemap.Map, i int) devicemap.Device {
	return m[a.problem.Items[i].Units[0]]
}

func (a *search) put(m devicemap.Map, i int, d devicemap.Device) {
	for _, u := range a.problem.Items[i].Units {
		m[u] = d
	}
}

// swaps exchanges an item of class c on device d and one of class k on device
// e in the loads, if the map is then no worse; −1 is the class of what holds
// nothing.
func (a *search) swaps(c, k int, d, e devicemap.Device) bool {
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
	if a.squaresOf(from, to) <= was*(1+instance.Tolerance) {
		return true
	}
	v.apply(-1)
	return false
}
