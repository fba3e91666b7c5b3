package downset

import (
	"encoding/binary"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// stretch is the set of items between two down-sets, and what it costs a
// device, kept up to date as items come and go.
type stretch struct {
	kinds []graph.Kind
	room  []float64 // capacities
	time  []float64 // item × kinds
	size  []float64
	// The nets an item touches are nets[first[item]:first[item+1]]. Nets that
	// join the same items are one: they cross an edge together.
	first, nets []int32
	cost        []float64
	pins        []int32 // how many items a net touches
	before      []int32 // of these, in the down-set below the stretch
	inside      []int32 // of these, in the stretch
	// drift bounds the error of a load, whose transfers come and go: one ulp of
	// all of them for every net that an item touches.
	drift float64
}

// usage is what a stretch costs. Undoing a step restores it exactly.
type usage struct {
	time [maxKinds]float64
	size float64
	// transfers cross the stretch's edge; settled do so however it grows,
	// for they come from below.
	transfers, settled float64
}

// maxKinds bounds the kinds of devices that Solve takes.
const maxKinds = 8

func newStretch(in *graph.Instance, size []float64) *stretch {
	s := &stretch{kinds: in.Problem.Kinds, size: size}
	touching := make([][]int32, len(in.Nodes))
	known := make(map[string]int32)
	for i := range in.Nets {
		n := &in.Nets[i]
		items := append([]int{n.Source}, n.Sinks...)
		slices.Sort(items)
		var key []byte
		for _, v := range items {
			key = binary.LittleEndian.AppendUint32(key, uint32(v))
		}
		at, found := known[string(key)]
		if !found {
			at = int32(len(s.cost))
			known[string(key)] = at
			s.cost = append(s.cost, 0)
			s.pins = append(s.pins, int32(len(items)))
			for _, v := range items {
				touching[v] = append(touching[v], at)
			}
		}
		s.cost[at] += n.Cost
	}
	s.first = []int32{0}
	for v := range touching {
		s.nets = append(s.nets, touching[v]...)
		s.first = append(s.first, int32(len(s.nets)))
		for k := range in.Time {
			s.time = append(s.time, in.Time[k][v])
		}
	}
	for _, k := range s.kinds {
		s.room = append(s.room, k.Room())
	}
	s.drift = 0x1p-53 * graph.Sum(s.cost) * float64(len(s.nets))
	s.before, s.inside = make([]int32, len(s.cost)), make([]int32, len(s.cost))
	return s
}

// start empties the stretch, above the down-set of these items.
func (s *stretch) start(below []int32) {
	clear(s.before)
	for _, v := range below {
		for _, e := range s.nets[s.first[v]:s.first[v+1]] {
			s.before[e]++
		}
	}
}

// push adds an item to the nets' counts.
func (s *stretch) push(v int32, u *usage) {
	for _, e := range s.nets[s.first[v]:s.first[v+1]] {
		n := s.inside[e] + 1
		s.inside[e] = n
		if n == 1 {
			u.transfers += s.cost[e]
			if s.before[e] > 0 {
				u.settled += s.cost[e]
			}
		}
		if n == s.pins[e] {
			u.transfers -= s.cost[e]
		}
	}
}

// pop takes it out again.
func (s *stretch) pop(v int32) {
	for _, e := range s.nets[s.first[v]:s.first[v+1]] {
		s.inside[e]--
	}
}

// load is what the stretch costs a device of a kind, least what it will cost
// however it grows.
func (s *stretch) load(u *usage, k int) (load, least float64) {
	if s.kinds[k].FreeTransfers {
		return u.time[k], u.time[k]
	}
	return u.time[k] + u.transfers, u.time[k] + u.settled
}
