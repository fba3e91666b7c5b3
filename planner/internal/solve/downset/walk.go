package downset

import (
	"errors"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

var errFull = errors.New("more states than memory is set aside for")

// run looks for the best way with loads up to a limit. found is false where
// there is none, which proves the limit a lower bound if the lattice is
// complete.
func (s *search) run(limit float64) (found bool, err error) {
	s.limit = limit
	full := int32(s.l.len() - 1)
	s.t.reset()
	clear(s.seen)
	s.t.value[s.t.of(0)] = 0
	for set := int32(0); set < full && s.err == nil; set++ {
		if set%256 == 0 {
			s.err = s.ctx.Err()
		}
		s.live = s.t.live(set, s.limit, s.best, s.live)
		s.keepHopeful(set)
		if len(s.live) == 0 {
			continue
		}
		s.start(s.l.members(set))
		s.from = set
		s.walk(set, usage{})
	}
	return len(s.t.live(full, limit, s.best, nil)) > 0, s.err
}

// keepHopeful drops live states that cannot be finished, and notes the kinds
// that the others have left.
func (s *search) keepHopeful(set int32) {
	kept := s.live[:0]
	s.open = s.open[:0]
	var open [maxKinds]bool
	for _, at := range s.live {
		if s.hopeless(at.at, set) {
			continue
		}
		kept = append(kept, at)
		for k := range s.kinds {
			open[k] = open[k] || s.t.used[at.at][k] < s.t.most[k]
		}
	}
	s.live = kept
	for k := range s.kinds {
		if open[k] {
			s.open = append(s.open, k)
		}
	}
}

// walk visits the sets above one, each once, whatever the way.
func (s *search) walk(set int32, u usage) {
	s.steps++
	if s.steps%1024 == 0 && s.err == nil {
		if s.err = s.ctx.Err(); len(s.t.value) > s.most {
			s.err = errFull
		}
	}
	if s.err != nil {
		return
	}
	for e := s.l.first[set]; e < s.l.first[set+1]; e++ {
		to, v := s.l.next[e], s.l.item[e]
		// A set's number is above that of the set it is walked to from, so a
		// mark is never mistaken for one of set 0.
		if s.seen[to] == s.from+1 {
			continue
		}
		s.seen[to] = s.from + 1
		w := u
		for k := range s.kinds {
			w.time[k] += s.time[int(v)*len(s.kinds)+k]
		}
		w.size += s.size[v]
		if !s.fits(&w) {
			continue
		}
		s.push(v, &w)
		if s.fits(&w) {
			s.record(to, &w)
			s.walk(to, w)
		}
		s.pop(v)
	}
}

// fits: some device that is left can hold the stretch, and may hold more.
func (s *search) fits(u *usage) bool {
	for _, k := range s.open {
		if _, least := s.load(u, k); least <= s.limit && u.size <= s.room[k] {
			return true
		}
	}
	return false
}

// record puts the stretch on a device of each kind that can hold it.
func (s *search) record(to int32, u *usage) {
	for _, k := range s.open {
		load, _ := s.load(u, k)
		if !(load <= s.limit) || u.size > s.room[k] {
			continue
		}
		for _, at := range s.live {
			next := at.at + s.t.stride[k]
			if s.t.used[at.at][k] == s.t.most[k] || s.hopeless(next, to) {
				continue
			}
			if i, v := s.t.of(to)+next, max(at.value, load); v < s.t.value[i] {
				s.t.value[i], s.t.from[i] = v, newStep(s.from, k)
				if int(to) == s.l.len()-1 {
					s.limit = min(s.limit, v*(1-graph.Rounding))
				}
			}
		}
	}
}

// places follows the steps back from the full set.
func (s *search) places() (place []int, largest float64) {
	full := int32(s.l.len() - 1)
	base, at := s.t.of(full), 0
	for i := range s.t.count {
		if s.t.value[base+i] < s.t.value[base+at] {
			at = i
		}
	}
	largest = s.t.value[base+at]
	device := make([]int32, len(s.o.Nodes))
	for set := full; set != 0; {
		by := s.t.from[s.t.of(set)+at]
		at -= s.t.stride[by.kind()]
		d := s.t.used[at][by.kind()]
		for k := range by.kind() {
			d += s.kinds[k].Count
		}
		for _, v := range s.l.members(set) {
			device[v] = int32(d)
		}
		set = by.set()
	}
	return s.o.Places(device), largest
}
