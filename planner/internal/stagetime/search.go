package stagetime

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// maxBranches limits a branch and bound, maxStretches its tables.
const (
	maxBranches  = 4_000_000
	maxStretches = 100_000_000
)

// pipeSearch is the branch and bound over the cuts of a pipeline with one stage per device. It goes
// stage by stage from the first, the most promising end of the stage first. The bounds of
// [pipeBound] prune it.
type pipeSearch struct {
	*cutter
	*pipeBound
	at     int     // index of its order of devices
	cutoff float64 // steps must be below it
	first  bool    // any map will do
	best   []int
	cuts   []int
	nodes  int
	ended  bool // by the context or maxBranches: the search is incomplete
}

// prefix has the bounds of the stages cut so far.
type prefix struct {
	until, ahead, token float64 // [stageView.until]; a micro-batch to the next stage, forward only
	whole, ends, host   float64
	firstUpdate         float64
}

// newPipeSearch builds the tables for these caps; nil if the context ends first.
func newPipeSearch(ctx context.Context, costs *pipeCosts, schedule costmodel.Schedule, train bool, caps []int64) *pipeSearch {
	items, stages := costs.Count(), int(schedule.Stages)
	cut, watch := &cutter{pipeCosts: costs}, &stretchWatch{ctx: ctx}
	for stage := range stages {
		fits := make([]bool, (items+1)*(items+1))
		to, from := make([]float64, items+1), make([]float64, items+1)
		for b := stage + 1; b <= items-(stages-1-stage); b++ {
			if stage+1 < stages {
				to[b], from[b] = costs.message(stage, stage+1, b), costs.message(stage+1, stage, b)
			}
			if math.IsInf(to[b], 1) || math.IsInf(from[b], 1) {
				continue // no link, so no finite time
			}
			if watch.over(b - stage) {
				return nil
			}
			for a := b - 1; a >= stage; a-- {
				fit := costs.barred[stage][a] == costs.barred[stage][b] && costs.Peak(stage, a, b) <= caps[stage]
				if fits[a*(items+1)+b] = fit; !fit && costs.Floor(stage, a, b) > caps[stage] {
					break // more items need at least as much
				}
			}
		}
		cut.fits, cut.to, cut.from = append(cut.fits, fits), append(cut.to, to), append(cut.from, from)
	}
	bound := newPipeBound(watch, schedule, train, cut, items)
	if bound == nil {
		return nil
	}
	return &pipeSearch{
		cutter: cut, pipeBound: bound,
		cutoff: math.Inf(1), cuts: make([]int, stages+1),
	}
}

// root returns a lower bound of all cuts' steps; +Inf: none fit.
func (search *pipeSearch) root() float64 { return search.below(prefix{}, 0, 0) }

// below returns the bound of a prefix whose next stage starts at an item.
func (search *pipeSearch) below(p prefix, stage, a int) float64 {
	return max(
		max(p.whole, p.until+search.whole[stage][a])+p.firstUpdate,
		max(p.ends, p.ahead+search.ends[stage][a]),
		max(p.host, search.host[stage][a]),
	) + p.token + search.token[stage][a]
}

func (p prefix) with(stage int, view stageView) prefix {
	out := prefix{
		until: p.until + view.until, ahead: p.ahead + view.ahead, token: p.token + view.token,
		whole: max(p.whole, p.until+view.width), ends: max(p.ends, p.ahead+view.width+view.update), host: max(p.host, view.host), firstUpdate: p.firstUpdate,
	}
	if stage == 0 {
		out.firstUpdate = view.update
	}
	return out
}

// search searches all cuts below the cutoff.
func (search *pipeSearch) search(ctx context.Context) {
	search.nodes, search.ended = 0, false
	search.branch(ctx, prefix{}, 0)
}

// branched is one end of the next stage.
type branched struct {
	end   int
	bound float64
	prefix
}

func (search *pipeSearch) branch(ctx context.Context, p prefix, stage int) {
	if search.over(ctx) {
		return
	}
	if stage == search.stages {
		if got := search.step(search.cuts); got < search.cutoff {
			search.best, search.cutoff = slices.Clone(search.cuts), got*(1-1e-12)
		}
		return
	}
	branches := search.branches(p, stage)
	for i := range branches {
		if branches[i].bound >= search.cutoff {
			return
		}
		search.cuts[stage+1] = branches[i].end
		search.branch(ctx, branches[i].prefix, stage+1)
	}
}

// over counts a node, and reports that the search must end.
func (search *pipeSearch) over(ctx context.Context) bool {
	const often = 1 << 17 // ends of a stage between two checks of the context
	search.nodes++
	if search.nodes%max(1, min(1<<8, often/search.items)) == 0 && ctx.Err() != nil || search.nodes > maxBranches {
		search.ended = true
	}
	return search.ended || search.first && search.best != nil
}

// branches returns the ends of a stage that may be below the cutoff, best bound first.
func (search *pipeSearch) branches(p prefix, stage int) []branched {
	a := search.cuts[stage]
	var branches []branched
	last := search.items - (search.stages - 1 - stage)
	for b := a + 1; b <= last; b++ {
		if stage == search.stages-1 && b < last || !search.ok(stage, a, b, search.items) {
			continue
		}
		next := p.with(stage, search.stage(search.cutter, stage, a, b))
		if bound := search.below(next, stage+1, b); bound < search.cutoff {
			branches = append(branches, branched{b, bound, next})
		}
	}
	slices.SortStableFunc(branches, func(a, b branched) int { return cmp.Compare(a.bound, b.bound) })
	return branches
}
