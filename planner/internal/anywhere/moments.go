package anywhere

import (
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// holding is what one unit of a slot holds at a moment: full if it is heavy or
// the moment asks for no heavy unit, sure otherwise; transient is what comes
// on top on its device where it is heavy.
type holding struct{ full, sure, transient int64 }

// Moments lists the moments of a step that may bind. Each is read off the
// events of one unit after the other: a device's peak is at least what there is
// at any moment.
func (s *Problem) Moments() []Moment {
	t := s.In.Costs
	if t.Workload.Mode == costmodel.Load {
		return s.level("weights", false)
	}
	// At the end of forward, saved activations and caches of all units.
	out := s.level("end of forward", true)
	forward := s.around("forward")
	if !slices.ContainsFunc(forward, func(m timeline.Moment) bool { return m.Peak < m.After }) {
		// In the last heavy unit's forward all before it is kept.
		out = append(out, s.charged("forward", false, func(position int) holding {
			m := &forward[position]
			return holding{m.After, m.Before, m.Peak - m.After}
		})...)
	}
	if t.Workload.Mode == costmodel.Train {
		kept := !t.OutputsDropped
		out = append(out, s.level("optimizer step", kept)...)
		out = append(out, s.backwards(kept)...)
	}
	return out
}

// around are the moments of this name, of one unit of each position.
func (s *Problem) around(what string) []timeline.Moment {
	out := make([]timeline.Moment, len(s.Positions))
	for position := range s.Positions {
		for _, m := range s.Positions[position].Held[1].Moments(s.In.Costs.Workload.Mode, s.In.Costs.LastGradients) {
			if m.What == what {
				out[position] = m
			}
		}
	}
	return out
}

// level is a moment at which all that any unit holds is there.
func (s *Problem) level(what string, output bool) []Moment {
	units := s.around(what)
	return s.charged(what, output, func(position int) holding {
		return holding{units[position].Peak, units[position].Peak, 0}
	})
}

// backwards are the moments when backward stands between two slots: those
// before still hold their activations, those after have their gradients. Of
// all, the first, the last and the one that holds most.
func (s *Problem) backwards(kept bool) []Moment {
	units := s.around("backward")
	if slices.ContainsFunc(units, func(m timeline.Moment) bool { return m.Peak < max(m.Before, m.After) }) {
		return nil
	}
	var now, most int64
	at := 0
	for position := range units {
		now += int64(len(s.Positions[position].Held)-1) * (units[position].Before - units[position].After)
		if now > most {
			most, at = now, position+1
		}
	}
	name := map[int]string{at: "backward", 0: "end of backward", len(s.Positions): "start of backward"}
	var out []Moment
	for _, between := range slices.Backward(slices.Sorted(maps.Keys(name))) { // in one order, as equal ones stay in it
		out = append(out, s.charged(name[between], kept, func(position int) holding {
			m := &units[position]
			sure := min(m.Before, m.After)
			if position < between {
				return holding{m.Before, sure, m.Peak - m.Before}
			}
			return holding{m.After, sure, m.Peak - m.After}
		})...)
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return int(max(-1, min(1, b.Total-a.Total))) })
	return out
}

// thresholds bounds how many sets of heavy units a moment is tried with.
const thresholds = 32

// charged is a moment without heavy units, and with those that run products
// and have at least some transient.
func (s *Problem) charged(name string, output bool, of func(position int) holding) []Moment {
	units := make([]holding, len(s.Positions))
	var least []int64 // transients of those that run products
	for i := range s.Positions {
		r := &s.Positions[i].Held[1]
		if units[i] = of(i); r.Products {
			least = append(least, units[i].transient)
		}
	}
	none := make([]bool, len(units))
	out := []Moment{s.moment(name, output, units, none)}
	slices.Sort(least)
	least = slices.Compact(least)
	for step, i := max(1, len(least)/thresholds), 0; i < len(least); i += step {
		heavy := make([]bool, len(units))
		for at := range units {
			heavy[at] = s.Positions[at].Held[1].Products && units[at].transient >= least[i]
		}
		m := s.moment(name, output, units, heavy)
		m.charge, m.charged = max(0, least[i]), true
		out = append(out, m)
	}
	return out
}

// moment sums units up by class.
func (s *Problem) moment(name string, output bool, units []holding, heavy []bool) Moment {
	m := Moment{Name: name, output: output, Weight: make([]int64, len(s.Kinds))}
	some := slices.Contains(heavy, true)
	carries := make([]bool, len(s.Kinds))
	for i := range units {
		c := s.Positions[i].Kind
		w := units[i].sure
		if heavy[i] || !some {
			w = units[i].full
		}
		m.Weight[c] += w
		carries[c] = carries[c] || heavy[i]
	}
	for c := range s.Kinds {
		all := m.Weight[c] * int64(len(s.Kinds[c].Items))
		m.Total += all
		if !carries[c] {
			m.light += all
		}
	}
	return m
}
