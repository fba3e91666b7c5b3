package brute

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Point is a map by its step and its largest share.
type Point struct {
	Seconds, Share float64
	Map            devicemap.Map
}

// Points scores every contiguous device map that fits: in device order, or,
// with anyOrder, where each device's units of the chain are one run.
func Points(p *planner.Problem, anyOrder bool) []Point {
	s := search{p: p, m: make(devicemap.Map, len(p.Graph.Units))}
	s.rules()
	var out []Point
	judge := func() {
		if !s.allowed() {
			return
		}
		pt := Point{Map: append(devicemap.Map{}, s.m...), Seconds: *devicemap.StepSeconds(p.Costs, p.Topology, s.m)}
		for _, d := range devicemap.Predict(p.Costs, p.Topology, s.m) {
			pt.Share = max(pt.Share, d.Share())
		}
		if pt.Share <= 1 && linked(p.Topology, s.m) {
			out = append(out, pt)
		}
	}
	s.every(0, -1, 0, anyOrder, judge)
	return out
}

// every puts unit u and those behind it everywhere; last is the device of the
// chained unit before, left are the devices whose run is over.
func (s *search) every(u int, last devicemap.Device, left uint, anyOrder bool, judge func()) {
	if u == len(s.m) {
		judge()
		return
	}
	for d := range devicemap.Device(len(s.p.Topology.Devices)) {
		next, over := last, left
		if s.chained[u] {
			if !anyOrder && d < last || left>>uint(d)&1 != 0 {
				continue
			}
			if last >= 0 && d != last {
				over |= 1 << uint(last)
			}
			next = d
		}
		s.m[u] = d
		s.every(u+1, next, over, anyOrder, judge)
	}
}

func linked(topo *costmodel.Topology, m devicemap.Map) bool {
	for u := 1; u < len(m); u++ {
		if !topo.Linked(int(m[u-1]), int(m[u])) {
			return false
		}
	}
	return true
}

// Front are the points that no other beats in both.
func Front(points []Point) []Point {
	var out []Point
	for _, a := range points {
		keep := true
		for _, b := range points {
			if b.less(a, tolerance) {
				keep = false
				break
			}
		}
		for _, b := range out {
			if keep && same(a.Seconds, b.Seconds) && same(a.Share, b.Share) {
				keep = false
			}
		}
		if keep {
			out = append(out, a)
		}
	}
	return out
}

const tolerance = 1e-9

func same(a, b float64) bool { return a-b <= tolerance*a && b-a <= tolerance*a }

// less reports a point that is no worse in either and better in one.
func (p Point) less(q Point, by float64) bool {
	worse := p.Seconds > q.Seconds*(1+by) || p.Share > q.Share*(1+by)
	return !worse && (p.Seconds < q.Seconds*(1-by) || p.Share < q.Share*(1-by))
}
