package brute

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Judged is what is known of a problem from every map there is.
type Judged struct {
	Maps, Fit int     // allowed, and of them within all budgets
	Linked    bool    // a map that fits has all the links that it needs
	Share     float64 // the least largest share, fit or not
	Squares   float64 // of those maps the least sum of squared shares
	Seconds   float64 // the shortest step of the maps that fit
	Even      float64 // of those maps the least largest share
}

// Pipeline looks at every way to cut, under [planner.Time] on every order
// of the devices, by the check and the plain form of the step, which share
// nothing with the solver but the cost table.
func Pipeline(p *planner.Problem) Judged {
	w := &p.Costs.Workload
	n, chunks := len(p.Topology.Devices), 1
	if w.Schedule == costmodel.Interleaved {
		chunks = int(w.VirtualStages)
	}
	out := Judged{Share: math.Inf(1), Squares: math.Inf(1), Seconds: math.Inf(1), Even: math.Inf(1)}
	own := make([]int, n)
	for d := range own {
		own[d] = d
	}
	orders := [][]int{own}
	if p.Objective == planner.Time {
		orders = Permutations(n)
	}
	for _, order := range orders {
		ordered := slices.Equal(order, own)
		Cuts(len(p.Graph.Units), n*chunks, nil, func(cuts []int) {
			m := make(devicemap.Map, len(p.Graph.Units))
			for c := range len(cuts) - 1 {
				for u := cuts[c]; u < cuts[c+1]; u++ {
					m[u] = devicemap.Device(order[c%n])
				}
			}
			if keeps(p, m) {
				out.take(p, m, ordered)
			}
		})
	}
	return out
}

// keeps reports that a map keeps the pins and together-groups, which name
// units.
func keeps(p *planner.Problem, m devicemap.Map) bool {
	at := func(name string) devicemap.Device {
		return m[slices.IndexFunc(p.Graph.Units, func(u modelgraph.Unit) bool { return u.Name == name })]
	}
	for _, pin := range p.Pins {
		if int(at(pin.Pattern)) != pin.Device {
			return false
		}
	}
	for _, set := range p.Together {
		if at(set[0]) != at(set[1]) {
			return false
		}
	}
	return true
}

func (j *Judged) take(p *planner.Problem, m devicemap.Map, ordered bool) {
	r := devicemap.CheckMap(p.Graph, p.Costs, p.Topology, m)
	for _, f := range r.Faults {
		if f.Kind != devicemap.DoesNotFit {
			return
		}
	}
	most, squares := 0., 0.
	for d := range r.Devices {
		s := r.Devices[d].Share()
		most, squares = max(most, s), squares+s*s
	}
	linked := true
	for u := 1; u < len(m); u++ {
		linked = linked && p.Topology.Linked(int(m[u-1]), int(m[u]))
	}
	if ordered {
		j.Maps++
		switch {
		case most < j.Share*(1-1e-12):
			j.Share, j.Squares = most, squares
		case most <= j.Share*(1+1e-12):
			j.Squares = min(j.Squares, squares)
		}
	}
	if len(r.Faults) > 0 || p.Objective == planner.Time && !linked {
		return
	}
	j.Fit++
	j.Linked = j.Linked || linked
	if p.Objective == planner.Time {
		switch seconds := *devicemap.StepSeconds(p.Costs, p.Topology, m); {
		case seconds < j.Seconds*(1-1e-12):
			j.Seconds, j.Even = seconds, most
		case seconds <= j.Seconds*(1+1e-12):
			j.Even = min(j.Even, most)
		}
	}
}

// Cuts calls f with all ways to cut n units into k runs.
func Cuts(n, k int, cuts []int, f func([]int)) {
	if cuts == nil {
		cuts = []int{0}
	}
	if len(cuts) == k {
		f(append(slices.Clone(cuts), n))
		return
	}
	for at := cuts[len(cuts)-1] + 1; at <= n-(k-len(cuts)); at++ {
		Cuts(n, k, append(slices.Clone(cuts), at), f)
	}
}

// Permutations are all orders of n devices.
func Permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, p := range Permutations(n - 1) {
		for at := range n {
			q := append(append(append([]int{}, p[:at]...), n-1), p[at:]...)
			out = append(out, q)
		}
	}
	return out
}

// LoopedMap gives the runs between cuts to the devices in turn; nil where one
// ends on a rotary, which goes with what follows it.
func LoopedMap(p *planner.Problem, cuts, devices []int) devicemap.Map {
	m := make(devicemap.Map, len(p.Costs.Units))
	for c := range len(cuts) - 1 {
		if p.Costs.Units[cuts[c+1]-1].Params == 0 {
			return nil
		}
		for u := cuts[c]; u < cuts[c+1]; u++ {
			m[u] = devicemap.Device(devices[c%len(devices)])
		}
	}
	return m
}
