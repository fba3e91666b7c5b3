package planner_test

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// judged is what is known of a problem from every map there is.
type judged struct {
	maps, fit int     // allowed, and of them within all budgets
	linked    bool    // a map that fits has all the links that it needs
	share     float64 // the least largest share, fit or not
	squares   float64 // of those maps the least sum of squared shares
	seconds   float64 // the shortest step of the maps that fit
	even      float64 // of those maps the least largest share
}

// judgePipeline looks at every way to cut, under [planner.Time] on every order
// of the devices, by the check and the plain form of the step, which share
// nothing with the solver but the cost table.
func judgePipeline(p *planner.Problem) judged {
	w := &p.Costs.Workload
	n, chunks := len(p.Topology.Devices), 1
	if w.Schedule == costmodel.Interleaved {
		chunks = int(w.VirtualStages)
	}
	out := judged{share: math.Inf(1), squares: math.Inf(1), seconds: math.Inf(1), even: math.Inf(1)}
	own := make([]int, n)
	for d := range own {
		own[d] = d
	}
	orders := [][]int{own}
	if p.Objective == planner.Time {
		orders = permutations(n)
	}
	for _, order := range orders {
		ordered := slices.Equal(order, own)
		cutAll(len(p.Graph.Units), n*chunks, nil, func(cuts []int) {
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

func (j *judged) take(p *planner.Problem, m devicemap.Map, ordered bool) {
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
		j.maps++
		switch {
		case most < j.share*(1-1e-12):
			j.share, j.squares = most, squares
		case most <= j.share*(1+1e-12):
			j.squares = min(j.squares, squares)
		}
	}
	if len(r.Faults) > 0 || p.Objective == planner.Time && !linked {
		return
	}
	j.fit++
	j.linked = j.linked || linked
	if p.Objective == planner.Time {
		switch seconds := *devicemap.StepSeconds(p.Costs, p.Topology, m); {
		case seconds < j.seconds*(1-1e-12):
			j.seconds, j.even = seconds, most
		case seconds <= j.seconds*(1+1e-12):
			j.even = min(j.even, most)
		}
	}
}
