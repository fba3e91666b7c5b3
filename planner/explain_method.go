package planner

// method says how maps of the problem are found, and why so, where the search
// itself has no more to say.
func (p *Problem) method() string {
	if p.Objective == Time && !p.Costs.Workload.Strategy.Traits().Replicated {
		return p.timeMethod()
	}
	switch {
	case p.Costs.Workload.Strategy.Traits().Replicated:
		return "none: every GPU runs the whole model, so there is one placement"
	case !p.piped():
		return "exact search of the chain: each GPU takes one run of units in order, so a bisection over the largest share with a reach per GPU decides each target"
	case p.schedule().Chunks > 1:
		return "cuts by trial: a GPU runs several stages, so that no reach decides a target; all cuts are tried where they are few, else they are moved from two beginnings and from places beside the best"
	}
	return "exact search of the stages: a dynamic program over the cuts, as a stage may hold less with a unit more where that one hands on less; a bisection over what a stage holds at least leaves out cuts that are on no better map"
}

// timeMethod is method for the shortest step.
func (p *Problem) timeMethod() string {
	switch {
	case p.Anywhere && !p.piped():
		return "any assignment: local search from the contiguous optimum (units and stretches moved, units swapped), with bounds that hold for any map"
	case !p.piped():
		return "dynamic program over the chain and the order of devices: one GPU works at a time, so a step is the sum of its parts, and units and cuts add up"
	case p.schedule().Chunks > 1:
		return "search for better cuts: GPUs run several stages in turn, so that a step is no sum over them"
	}
	return "branch and bound over the cuts of the stages, for each order of unequal devices: a step depends on all stages together, so it is bounded and not added up"
}

// Arguments are the lower bounds of the largest share that were worked out,
// those that hold for any assignment of units among them. It works them out
// anew for a contiguous map.
func (s *Solution) Arguments(p *Problem) []BoundValue {
	if s.Bounds != nil || s.Objective == Time || s.Offloaded != nil || p.piped() || p.Costs.Workload.Strategy.Traits().Replicated {
		return s.Bounds
	}
	sc, err := newScatter(p)
	if err != nil {
		return nil
	}
	a := anySearch{sc: sc}
	a.average, a.at = sc.average(sc.moments())
	out := a.bounds()
	for i := range out {
		if out[i].Name == s.Bound && out[i].Value < s.LowerBound { // the form of the map allows more
			out[i].Value = s.LowerBound
		}
	}
	if s.Bound == "search" {
		out = append(out, BoundValue{s.Bound, s.LowerBound, "the largest share below which no contiguous map is"})
	}
	return out
}
