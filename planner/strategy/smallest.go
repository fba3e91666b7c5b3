package strategy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Smallest are the changes that make the problem fit, each with its result. The smallest changes
// come first: changes with the same result, then the optimizer's state, adapters, quantised weights
// and ZeRO offload. Less work, another strategy, and more or larger GPUs follow. If no single
// change of the same training is enough, they include several together. Once ctx is done, Smallest
// tries nothing more. With open degrees it tries GPUs after half a second, and ends when something fits.
func Smallest(ctx context.Context, problem planner.Problem, options Options) []Change {
	from := newSearch(problem, options)
	if from != nil {
		from.fitsOnly = true
		w := &from.Workload
		if slices.Contains([]costmodel.Degree{w.DP, w.TP, w.CP, w.EP, w.PP}, costmodel.AutoDegree) {
			from.end = time.Now().Add(time.Second / 2)
		}
	}
	switch {
	case from == nil:
		return nil
	case from.Diffusion != nil:
		return distinct(from.smallestPipeline(ctx))
	case !from.timed():
		return useful(followChanges(ctx, distinct(from.smallest(ctx))))
	}
	changed := *from
	changed.Objective = planner.Memory // it fits if anything does
	changed.Fixed = append(slices.Clone(from.Fixed), "offload")
	changes := changed.smallest(ctx)
	if from.end.IsZero() {
		changes = from.within(ctx, changes)
	}
	for i := range changes { // of open degrees: some fit under either objective
		changes[i].To.Objective = from.Objective
	}
	return useful(followChanges(ctx, distinct(changes)))
}

// useful leaves out changes that add to an earlier one under the same strategy and gain nothing.
func useful(changes []Change) []Change {
	var out []Change
	for i := range changes {
		if !slices.ContainsFunc(out, func(earlier Change) bool { return changes[i].idle(&earlier) }) {
			out = append(out, changes[i])
		}
	}
	return out
}

// idle reports a change that has an earlier one's settings and more, but whose fullest GPU is as
// full and whose verdict is no better.
func (change *Change) idle(earlier *Change) bool {
	row, was := &change.Row, &earlier.Row
	if len(change.Set) <= len(earlier.Set) || row.Resolved.Strategy != was.Resolved.Strategy || len(row.Solution.Devices) != len(was.Solution.Devices) {
		return false
	}
	if slices.ContainsFunc(earlier.Set, func(setting costmodel.Setting) bool { return !slices.Contains(change.Set, setting) }) {
		return false
	}
	return row.Solution.LargestShare >= was.Solution.LargestShare && (was.Solution.Verdict == "fits" || row.Solution.Verdict != "fits")
}

// remedies is a problem that does not fit, with edits that may help: full train the same, adapters
// freeze the model.
type remedies struct {
	*search
	full, adapters []edit
}

// smallest tries the remedies, the least intrusive first.
func (problem *search) smallest(ctx context.Context) []Change {
	full, adapters := split(problem.edits())
	tries := &remedies{problem, full, adapters}
	problem.misfits[problem.words()] = true
	out := append(tries.outOfOrder(ctx), tries.singles(ctx, full)...)
	others := tries.others(ctx)
	alone := func(change Change) bool { return tries.intrusion(&change) == 0 }
	switch sized := problem.sized(); {
	case len(out)+len(others) == 0: // nothing alone trains the same
		out = append(out, tries.several(ctx, problem, full)...)
	case problem.trains() && !slices.ContainsFunc(out, alone): // with the same results neither
		out = append(out, tries.several(ctx, problem, same(&sized))...)
	}
	problem.wide = true
	larger := slices.Concat(tries.moreGPUs(ctx, problem), tries.largerGPU(ctx))
	if len(larger) == 0 && problem.trains() && !slices.ContainsFunc(out, func(change Change) bool { return tries.intrusion(&change) < ranks["lora_rank"] }) {
		larger = tries.moreAndSame(ctx) // all others train less
	}
	out = slices.Concat(out, tries.lora(ctx), others, tries.sharded(ctx), tries.onHost(ctx), tries.offloaded(ctx), larger)
	switch {
	case len(out) > 0:
	case !problem.end.IsZero(): // what was left out
		problem.end = time.Time{}
		return problem.smallest(ctx)
	default:
		out = tries.combined(ctx)
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(tries.intrusion(&a), tries.intrusion(&b)) })
	return out
}

// singles are the edits that are enough alone; of a family the first.
func (problem *remedies) singles(ctx context.Context, all []edit) []Change {
	var out []Change
	found := families{}
	for _, change := range all {
		if found[change.family] {
			continue
		}
		fits := problem.fitting(ctx, problem.edited(change))
		out = append(out, fits...)
		found.add(&change, len(fits) > 0)
	}
	return out
}

// fitting is the change to a problem, none if it does not fit.
func (problem *search) fitting(ctx context.Context, changed *search) []Change {
	if changed == nil || problem.over() || changed.Diffusion == nil && problem.misfits[changed.words()] {
		return nil
	}
	row, ok := changed.first(ctx)
	if !ok || !row.Fits {
		problem.misfits[changed.words()], problem.refused[changed.words()] = true, !ok
		return nil
	}
	problem.found = true
	return []Change{problem.change(changed, &row)}
}

// words describe the tried problem.
func (problem *search) words() string {
	first := &problem.Topology.Devices[0]
	return fmt.Sprintf("%+v %v %v %v %v %d %d %d %+v", problem.Workload, problem.Objective, problem.Offload, problem.NoOffload, problem.Unconstrained,
		len(problem.Pins), len(problem.Together), len(problem.Topology.Devices), *first)
}

// outOfOrder is the device map with any layer on any GPU, if it fits and was not requested. It
// trains the same.
func (problem *remedies) outOfOrder(ctx context.Context) []Change {
	if strategy := problem.Workload.Strategy; problem.Unconstrained || problem.Offload != "" || problem.fixed("contiguous") || !strategy.Traits().Sequential && !problem.open() {
		return nil
	}
	changed := *problem.search
	changed.Unconstrained, changed.Workload.Strategy = true, costmodel.DeviceMap
	return problem.fitting(ctx, &changed)
}

// offloaded is the same map with units offloaded to the host's memory, else to disk.
func (problem *remedies) offloaded(ctx context.Context) []Change {
	workload := &problem.Workload
	if problem.fixed("offload") || problem.NoOffload || problem.Unconstrained || problem.Offload == planner.Disk || workload.Mode == costmodel.Train || !workload.Strategy.Traits().Sequential {
		return nil
	}
	for _, tier := range []planner.Tier{planner.CPU, planner.Disk} {
		changed := *problem.search
		changed.Offload = tier
		changed.set = append(slices.Clone(problem.set), costmodel.Set("offload", tier))
		changed.notes = append(slices.Clone(problem.notes), slowerForwards)
		if fits := problem.fitting(ctx, &changed); fits != nil {
			return fits
		}
	}
	return nil
}

// split separates changes that train the same from changes that freeze the model.
func split(all []edit) (full, adapters []edit) {
	for _, change := range all {
		if changesTraining(&change) {
			adapters = append(adapters, change)
		} else {
			full = append(full, change)
		}
	}
	return full, adapters
}

// fixed reports a field that no change sets.
func (problem *search) fixed(field string) bool { return slices.Contains(problem.Fixed, field) }

// withStrategy is the problem under another strategy, without the fields of the old one.
func (problem *search) withStrategy(strategy costmodel.Strategy) *search {
	changed := *problem
	workload := &changed.Workload
	workload.Strategy, workload.Schedule, workload.VirtualStages, workload.ShardDegree = strategy, "", 0, 0
	workload.DP, workload.TP = 0, 0           // they are a pipeline's
	if workload.Runtime != costmodel.Devmap { // an explicit devmap stays
		workload.Runtime = ""
	}
	changed.Unconstrained, changed.Offload = false, "" // they are a device map's
	if strategy.Traits().Replicated {
		changed.Pins, changed.Together = nil, nil
	}
	return &changed
}

// others is the fastest other strategy that fits the workload, with constraints if it can.
func (problem *remedies) others(ctx context.Context) []Change {
	if problem.open() || ctx.Err() != nil {
		return nil
	}
	changed := problem.withStrategy("")
	if changed.Workload.MicroBatches == 1 {
		changed.Workload.MicroBatches = 0 // a pipeline would be idle
	}
	fits := problem.fitting(ctx, changed)
	if fits == nil && len(problem.Pins)+len(problem.Together) > 0 { // which rule out replicated models
		changed.Pins, changed.Together = nil, nil
		fits = problem.fitting(ctx, changed)
	}
	return fits
}

// several adds edits one by one until a changed problem fits. Then it removes each that is not
// needed, the most intrusive first.
func (problem *remedies) several(ctx context.Context, changed *search, all []edit) []Change {
	var applied []edit
	found := problem.fitting(ctx, changed)
	for i := 0; i < len(all) && found == nil; i++ {
		if last := len(applied) - 1; last >= 0 && all[i].family != "" && applied[last].family == all[i].family {
			applied = applied[:last] // which the next replaces
		}
		applied = append(applied, all[i])
		with := changed.edited(applied...)
		if found = problem.fitting(ctx, with); problem.refused[with.words()] {
			applied = applied[:len(applied)-1]
		}
	}
	for i := len(applied) - 2; i >= 0 && found != nil; i-- { // the last was needed
		fewer := slices.Delete(slices.Clone(applied), i, i+1)
		if fits := problem.fitting(ctx, changed.edited(fewer...)); fits != nil {
			applied, found = fewer, fits
		}
	}
	return found
}
