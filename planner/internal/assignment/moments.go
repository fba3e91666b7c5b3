package assignment

import (
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// holding is the memory of one unit of a position at a moment. Field full applies to heavy units,
// or if no unit is heavy. Field sure applies otherwise, and transient is the additional memory on
// the device of a heavy unit.
type holding struct{ full, sure, transient int64 }

// Moments lists the moments of a step that may bind. Each follows from the events of one unit after
// the other. A device's peak is at least its memory at any moment.
func (problem *Problem) Moments() []MemoryMoment {
	if problem.known != nil {
		return problem.known
	}
	table := problem.In.Costs
	if table.Workload.Mode == costmodel.Load {
		return problem.level("weights", false)
	}
	// The saved activations and caches of all units exist at the end of forward.
	out := problem.level("end of forward", true)
	forward := problem.around("forward")
	if !slices.ContainsFunc(forward, func(moment around) bool { return moment.peak < moment.after }) {
		// Everything before the last heavy unit is kept during its forward.
		out = append(out, problem.charged("forward", false, func(position int) holding {
			moment := &forward[position]
			return holding{moment.after, moment.before, moment.peak - moment.after}
		})...)
	}
	if table.Workload.Mode == costmodel.Train {
		retained := !table.OutputsDropped
		out = append(out, problem.level("optimizer step", retained)...)
		out = append(out, problem.backwards(retained)...)
	}
	return out
}

// around is the memory of one unit around an event of its step: before the change, at the peak, and
// after.
type around struct{ before, peak, after int64 }

// around returns the memory of one unit of each position around a part of its step.
func (problem *Problem) around(what string) []around {
	out := make([]around, len(problem.Positions))
	for position := range problem.Positions {
		moment := &out[position]
		moment.before, moment.peak, moment.after = problem.Positions[position].Summaries[1].Around(problem.In.Costs.Workload.Mode, problem.In.Costs.LastGradients, what)
	}
	return out
}

// level returns a moment with the full memory of every unit.
func (problem *Problem) level(what string, output bool) []MemoryMoment {
	units := problem.around(what)
	return problem.charged(what, output, func(position int) holding {
		return holding{units[position].peak, units[position].peak, 0}
	})
}

// backwards returns moments of backward between two positions. Positions before still have their
// activations; positions after have their gradients. It returns the first moment, the last one, and
// the one with the most memory.
func (problem *Problem) backwards(retained bool) []MemoryMoment {
	units := problem.around("backward")
	if slices.ContainsFunc(units, func(moment around) bool { return moment.peak < max(moment.before, moment.after) }) {
		return nil
	}
	var now, most int64
	at := 0
	for position := range units {
		now += int64(len(problem.Positions[position].Summaries)-1) * (units[position].before - units[position].after)
		if now > most {
			most, at = now, position+1
		}
	}
	name := map[int]string{at: "backward", 0: "end of backward", len(problem.Positions): "start of backward"}
	var out []MemoryMoment
	for _, between := range slices.Sorted(maps.Keys(name)) { // sorted, as a stable sort keeps the order of equal moments
		out = append(out, problem.charged(name[between], retained, func(position int) holding {
			moment := &units[position]
			sure := min(moment.before, moment.after)
			if position < between {
				return holding{moment.before, sure, moment.peak - moment.before}
			}
			return holding{moment.after, sure, moment.peak - moment.after}
		})...)
	}
	slices.SortStableFunc(out, func(a, b MemoryMoment) int { return int(max(-1, min(1, b.Total-a.Total))) })
	return out
}

// thresholds is the most sets of heavy units tried for a moment.
const thresholds = 32

// charged returns a moment without heavy units, and moments whose heavy units run products and have
// at least some transient.
func (problem *Problem) charged(name string, output bool, of func(position int) holding) []MemoryMoment {
	units := make([]holding, len(problem.Positions))
	var least []int64 // transients of units with products
	for i := range problem.Positions {
		summary := &problem.Positions[i].Summaries[1]
		if units[i] = of(i); summary.Products {
			least = append(least, units[i].transient)
		}
	}
	none := make([]bool, len(units))
	out := []MemoryMoment{problem.moment(name, output, units, none)}
	slices.Sort(least)
	least = slices.Compact(least)
	for step, i := max(1, len(least)/thresholds), 0; i < len(least); i += step {
		heavy := make([]bool, len(units))
		for at := range units {
			heavy[at] = problem.Positions[at].Summaries[1].Products && units[at].transient >= least[i]
		}
		moment := problem.moment(name, output, units, heavy)
		moment.charge, moment.charged = max(0, least[i]), true
		out = append(out, moment)
	}
	return out
}

// moment sums units by kind.
func (problem *Problem) moment(name string, output bool, units []holding, heavy []bool) MemoryMoment {
	moment := MemoryMoment{Name: name, output: output, Weight: make([]int64, len(problem.Kinds))}
	some := slices.Contains(heavy, true)
	carries := make([]bool, len(problem.Kinds))
	for i := range units {
		kind := problem.Positions[i].Kinds[0]
		bytes := units[i].sure
		if heavy[i] || !some {
			bytes = units[i].full
		}
		moment.Weight[kind] += bytes
		carries[kind] = carries[kind] || heavy[i]
	}
	for kind := range problem.Kinds {
		all := moment.Weight[kind] * int64(len(problem.Kinds[kind].Items))
		moment.Total += all
		if !carries[kind] {
			moment.light += all
		}
	}
	return moment
}
