package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
)

// stop is a device in an order of devices: which it is, and which stops may
// come before it. Stop 0 is the start, where no device has a unit yet.
type stop struct {
	device int
	before []int
}

// inOrder are the stops where devices follow each other by number, some left
// out.
func inOrder(devices int) []stop {
	out := []stop{{device: -1}}
	for d := range devices {
		s := stop{device: d}
		for before := range out {
			s.before = append(s.before, before)
		}
		out = append(out, s)
	}
	return out
}

// anyOrder are the stops where devices follow each other in any order: a stop
// is how many devices of each class were used, and the class of the last. Of
// a class, whose devices are alike, they are used by number. It is nil where
// there are more stops than most.
func anyOrder(classes [][]int, most int) []stop {
	c := len(classes)
	width := make([]int, c) // of a class's count in the number of a state
	states := 1
	for i := range classes {
		width[i] = states
		if states *= len(classes[i]) + 1; states > most {
			return nil
		}
	}
	at := make([]int, states*c) // the stop of a state and its last class
	out := []stop{{device: -1}}
	for state := 1; state < states; state++ { // counts only grow, so this is an order in time
		for last := range classes {
			used := state / width[last] % (len(classes[last]) + 1)
			if used == 0 {
				continue
			}
			s := stop{device: classes[last][used-1]}
			before := state - width[last]
			if before == 0 {
				s.before = []int{0}
			}
			for i := range classes {
				if n := at[before*c+i]; before > 0 && n > 0 {
					s.before = append(s.before, n)
				}
			}
			at[state*c+last] = len(out)
			if out = append(out, s); len(out) > most {
				return nil
			}
		}
	}
	return out
}

// classes groups the devices that are alike and may trade places: the same
// figures, the same links to all others. Those in apart are alone, and so is
// the input's device where it is given the outputs.
func classes(p *Problem, apart map[int]bool) [][]int {
	var out [][]int
	for d := range p.Topology.Devices {
		found := false
		for c := range out {
			if alike(p, apart, out[c][0], d) {
				out[c], found = append(out[c], d), true
				break
			}
		}
		if !found {
			out = append(out, []int{d})
		}
	}
	return out
}

func alike(p *Problem, apart map[int]bool, a, b int) bool {
	special := func(d int) bool { return apart[d] || p.Costs.OutputBytes > 0 && d == p.Costs.InputDevice }
	return !special(a) && !special(b) && interchangeable(p.Topology, a, b)
}

// interchangeable reports that the devices' figures and links are equal.
func interchangeable(topo *costmodel.Topology, a, b int) bool {
	x, y := topo.Devices[a], topo.Devices[b]
	x.Name, x.Host, y.Name, y.Host = "", "", "", ""
	if x != y {
		return false
	}
	same := func(from, to, like, also int) bool {
		if topo.Linked(from, to) != topo.Linked(like, also) {
			return false
		}
		const large = 1 << 30
		return topo.SendSeconds(from, to, 0) == topo.SendSeconds(like, also, 0) && topo.SendSeconds(from, to, large) == topo.SendSeconds(like, also, large)
	}
	for other := range topo.Devices {
		if other != a && other != b && (!same(a, other, b, other) || !same(other, a, other, b)) {
			return false
		}
	}
	return same(a, b, b, a)
}

// equal reports that all devices and links are alike, so that the order of
// devices makes no difference but for where the input is.
func equal(topo *costmodel.Topology) bool {
	for d := 1; d < len(topo.Devices); d++ {
		if !interchangeable(topo, 0, d) {
			return false
		}
	}
	return true
}
