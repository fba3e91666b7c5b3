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

// Moments lists the moments of a step that may bind. Each rests on
// timeline.Summary.Peak: a maximum is at least each of its terms.
func (s *Problem) Moments() []Moment {
	t := s.In.Costs
	if t.Workload.Mode == costmodel.Load {
		return s.charged("weights", false, func(_ int, r *timeline.Summary) holding { return holding{r.Static, r.Static, 0} })
	}
	base := func(r *timeline.Summary) int64 {
		if t.LastGradients {
			return r.Static + r.Grads
		}
		return r.Static
	}
	// At the end of forward, saved activations and caches of all units.
	out := s.charged("end of forward", true, func(_ int, r *timeline.Summary) holding {
		v := base(r) + r.Saved + r.CacheGrowth
		return holding{v, v, 0}
	})
	if s.Each(func(r *timeline.Summary) bool { return r.Forward >= r.Saved+r.UntilBodyEnd }) {
		// In the last heavy unit's forward all before it is kept.
		out = append(out, s.charged("forward", false, func(_ int, r *timeline.Summary) holding {
			return holding{base(r) + r.Saved + r.UntilBodyEnd, base(r), r.Forward - r.Saved - r.UntilBodyEnd}
		})...)
	}
	kept := !t.OutputsDropped
	if t.Workload.Mode == costmodel.Train {
		out = append(out, s.charged("optimizer step", kept, func(_ int, r *timeline.Summary) holding {
			v := r.Static + r.Grads + r.StepTransient
			return holding{v, v, 0}
		})...)
		out = append(out, s.backwards(kept)...)
	}
	return out
}

// backwards are the moments when backward stands between two slots: those
// before still hold their activations, those after have their gradients. Of
// all, the first, the last and the one that holds most.
func (s *Problem) backwards(kept bool) []Moment {
	if !s.Each(func(r *timeline.Summary) bool { return r.Backward >= max(r.Saved, r.Grads) }) {
		return nil
	}
	var now, most int64
	at := 0
	for i := range s.Positions {
		r := &s.Positions[i].Held[1]
		now += int64(len(s.Positions[i].Held)-1) * (r.Saved - r.Grads)
		if now > most {
			most, at = now, i+1
		}
	}
	name := map[int]string{at: "backward", 0: "end of backward", len(s.Positions): "start of backward"}
	var out []Moment
	for _, x := range slices.Sorted(maps.Keys(name)) { // in one order, as equal ones stay in it
		what := name[x]
		out = append(out, s.charged(what, kept, func(i int, r *timeline.Summary) holding {
			v := holding{r.Static + r.Grads, r.Static + min(r.Saved, r.Grads), r.Backward - r.Grads}
			if i < x {
				v.full, v.transient = r.Static+r.Saved, r.Backward-r.Saved
			}
			return v
		})...)
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return int(max(-1, min(1, b.Total-a.Total))) })
	return out
}

func (s *Problem) Each(ok func(*timeline.Summary) bool) bool {
	for i := range s.Positions {
		if !ok(&s.Positions[i].Held[1]) {
			return false
		}
	}
	return true
}

// thresholds bounds how many sets of heavy units a moment is tried with.
const thresholds = 32

// charged is a moment without heavy units, and with those that run products
// and have at least some transient.
func (s *Problem) charged(name string, output bool, of func(i int, r *timeline.Summary) holding) []Moment {
	units := make([]holding, len(s.Positions))
	var least []int64 // transients of those that run products
	for i := range s.Positions {
		r := &s.Positions[i].Held[1]
		if units[i] = of(i, r); r.Products {
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
