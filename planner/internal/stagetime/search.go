package stagetime

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// mostBranches ends a branch and bound, mostStretches its tables.
const (
	mostBranches  = 4_000_000
	mostStretches = 100_000_000
)

// pipeSearch is the branch and bound over the cuts of a pipeline with one
// stage a device: stage by stage from the first, the most promising end of
// the stage first, and what the bounds of [pipeBound] exclude left out.
type pipeSearch struct {
	*cutter
	*pipeBound
	at     int     // the number of its order of devices
	cutoff float64 // maps must be below
	first  bool    // any will do
	best   []int
	cuts   []int
	nodes  int
	ended  bool // by the context or mostBranches: not all was looked at
}

// prefix is the stages cut so far.
type prefix struct {
	through, ahead, token float64 // to the next stage, there and back; forward only
	whole, ends, host     float64
	firstUpdate           float64
}

// newPipeSearch makes the tables for these caps.
func newPipeSearch(c *pipeCosts, schedule costmodel.Schedule, train bool, caps []int64) *pipeSearch {
	items, stages := c.Count(), int(schedule.Stages)
	cut := &cutter{pipeCosts: c}
	for s := range stages {
		fits := make([]bool, (items+1)*(items+1))
		to, from := make([]float64, items+1), make([]float64, items+1)
		for b := s + 1; b <= items-(stages-1-s); b++ {
			if s+1 < stages {
				to[b], from[b] = c.message(s, s+1, b), c.message(s+1, s, b)
			}
			if math.IsInf(to[b], 1) || math.IsInf(from[b], 1) {
				continue // no link, and no time to reckon with
			}
			for a := s; a < b; a++ {
				fits[a*(items+1)+b] = c.barred[s][a] == c.barred[s][b] && c.Peak(s, a, b) <= caps[s]
			}
		}
		cut.fits, cut.to, cut.from = append(cut.fits, fits), append(cut.to, to), append(cut.from, from)
	}
	return &pipeSearch{
		cutter: cut, pipeBound: newPipeBound(schedule, train, cut, items),
		cutoff: math.Inf(1), cuts: make([]int, stages+1),
	}
}

// root is a step that no cuts are below; +Inf: none fit.
func (s *pipeSearch) root() float64 { return s.below(prefix{}, 0, 0) }

// below is the bound of a prefix whose next stage begins at an item.
func (s *pipeSearch) below(p prefix, stage, a int) float64 {
	return max(
		max(p.whole, p.through+s.whole[stage][a])+p.firstUpdate,
		max(p.ends, p.ahead+s.ends[stage][a]),
		max(p.host, s.host[stage][a]),
	) + p.token + s.token[stage][a]
}

func (p prefix) with(stage int, v stageView) prefix {
	out := prefix{
		through: p.through + v.through, ahead: p.ahead + v.ahead, token: p.token + v.token,
		whole: max(p.whole, p.through+v.width), ends: max(p.ends, p.ahead+v.width+v.update), host: max(p.host, v.host), firstUpdate: p.firstUpdate,
	}
	if stage == 0 {
		out.firstUpdate = v.update
	}
	return out
}

// search goes through all cuts below the cutoff.
func (s *pipeSearch) search(ctx context.Context) {
	s.nodes, s.ended = 0, false
	s.branch(ctx, prefix{}, 0)
}

// branched is a way to go on.
type branched struct {
	end   int
	bound float64
	prefix
}

func (s *pipeSearch) branch(ctx context.Context, p prefix, stage int) {
	if s.over(ctx) {
		return
	}
	if stage == s.stages {
		if got := s.step(s.cuts); got < s.cutoff {
			s.best, s.cutoff = slices.Clone(s.cuts), got*(1-1e-12)
		}
		return
	}
	ways := s.ways(p, stage)
	for i := range ways {
		if ways[i].bound >= s.cutoff {
			return
		}
		s.cuts[stage+1] = ways[i].end
		s.branch(ctx, ways[i].prefix, stage+1)
	}
}

// over counts a node, and says that the search has come to its end.
func (s *pipeSearch) over(ctx context.Context) bool {
	const often = 1 << 8
	s.nodes++
	if s.nodes%often == 0 && ctx.Err() != nil || s.nodes > mostBranches {
		s.ended = true
	}
	return s.ended || s.first && s.best != nil
}

// ways are the ends of a stage that may be below the cutoff, best bound first.
func (s *pipeSearch) ways(p prefix, stage int) []branched {
	a := s.cuts[stage]
	var ways []branched
	last := s.items - (s.stages - 1 - stage)
	for b := a + 1; b <= last; b++ {
		if stage == s.stages-1 && b < last || !s.ok(stage, a, b, s.items) {
			continue
		}
		next := p.with(stage, s.stage(s.cutter, stage, a, b))
		if bound := s.below(next, stage+1, b); bound < s.cutoff {
			ways = append(ways, branched{b, bound, next})
		}
	}
	slices.SortStableFunc(ways, func(a, b branched) int { return cmp.Compare(a.bound, b.bound) })
	return ways
}
