// Package brute is the judge of package planner: it looks at every map that
// the rules allow and scores each by the plain walk. Slow and obvious on
// purpose.
package brute

import (
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Best is what the best maps of a problem have in common.
type Best struct {
	Maps    int     // how many are allowed
	Value   float64 // least largest share
	Squares float64 // least sum of squared shares among the maps of that value
	Map     devicemap.Map
}

// Solve tries every map. The rules: tied units share a device, and so do the
// units of a together-group; pinned units are where their pin says; the units
// outside the tie groups stand in device order, with the first unit of a tie
// group among them unless it opens the chain; under Anywhere none of them has
// to. Patterns of pins and
// together-groups are names of units here. idle says whether an idle device
// counts its overhead; the answer for a model smaller than a context is the
// one without.
func Solve(p *planner.Problem, idle bool) Best {
	s := search{p: p, idle: idle, m: make(devicemap.Map, len(p.Graph.Units)), shares: map[string]float64{}}
	s.rules()
	s.place(0, 0)
	return s.best
}

type search struct {
	p        *planner.Problem
	m        devicemap.Map
	chained  []bool // the unit stands in device order
	together [][]int
	idle     bool
	best     Best
	shares   map[string]float64 // of a device with a set of units: most of the cost
}

// rules finds the units of the chain and the sets that share a device.
func (s *search) rules() {
	p := s.p
	s.chained = make([]bool, len(s.m))
	for u := range s.chained {
		s.chained[u] = !p.Anywhere
	}
	s.together = p.Graph.TiedUnits()
	for _, tied := range s.together {
		for i, u := range tied {
			s.chained[u] = i == 0 && u != 0 && !p.Anywhere
		}
	}
	for _, names := range p.Together {
		var set []int
		for _, n := range names {
			set = append(set, s.unit(n))
		}
		s.together = append(s.together, set)
	}
}

func (s *search) unit(name string) int {
	for u := range s.p.Graph.Units {
		if s.p.Graph.Units[u].Name == name {
			return u
		}
	}
	panic("brute: no unit " + name)
}

// place puts unit u and those behind it everywhere; last is the device of the
// chained unit before.
func (s *search) place(u int, last devicemap.Device) {
	if u == len(s.m) {
		s.judge()
		return
	}
	first := devicemap.Device(0)
	if s.chained[u] {
		first = last
	}
	for d := first; int(d) < len(s.p.Topology.Devices); d++ {
		s.m[u] = d
		next := last
		if s.chained[u] {
			next = d
		}
		s.place(u+1, next)
	}
}

func (s *search) allowed() bool {
	for _, set := range s.together {
		for _, u := range set {
			if s.m[u] != s.m[set[0]] {
				return false
			}
		}
	}
	for _, pin := range s.p.Pins {
		if int(s.m[s.unit(pin.Pattern)]) != pin.Device {
			return false
		}
	}
	return true
}

func (s *search) judge() {
	if !s.allowed() {
		return
	}
	value, squares := Score(s.p, s.m, s.idle, s.shares)
	if s.best.Maps == 0 || value < s.best.Value || value == s.best.Value && squares < s.best.Squares {
		s.best.Value, s.best.Squares = value, squares
		s.best.Map = append(s.best.Map[:0], s.m...)
	}
	s.best.Maps++
}

// Score is the largest share of a map and the sum of squared shares. With idle
// an idle device counts its overhead, so that leaving one idle gains nothing.
// seen, if not nil, remembers the share of a device with a set of units.
func Score(p *planner.Problem, m devicemap.Map, idle bool, seen map[string]float64) (value, squares float64) {
	for d := range p.Topology.Devices {
		key := make([]byte, 1+len(m))
		key[0] = byte(d)
		for u := range m {
			if int(m[u]) == d {
				key[1+u] = 1
			}
		}
		share, ok := seen[string(key)]
		if !ok {
			share = shareOf(p, m, d, idle)
			if seen != nil {
				seen[string(key)] = share
			}
		}
		value = max(value, share)
		squares += share * share
	}
	return value, squares
}

func shareOf(p *planner.Problem, m devicemap.Map, d int, idle bool) float64 {
	got := devicemap.Predict(p.Costs, p.Topology, m)[d]
	if got.Units == 0 && idle {
		return float64(p.Costs.Overhead(d, &p.Topology.Devices[d])) / float64(got.Budget())
	}
	return got.Share()
}
