package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// StageError is a pipeline that has no stages of this form.
type StageError struct {
	// Field is at fault, as a plan file or a topology names it.
	Field string
	// Devices and Units are the GPUs, and the units that can be stages.
	Devices, Units int
	Msg            costmodel.Message
}

// Error implements error.
func (e *StageError) Error() string { return e.Words(costmodel.Setting.String) }

// Words is the error with its settings as name says them.
func (e *StageError) Words(name func(costmodel.Setting) string) string {
	return name(costmodel.Setting{Field: e.Field}) + ": " + e.Msg.Words(name)
}

// schedule is that of the problem's devices.
func (p *Problem) schedule() costmodel.Schedule {
	w := &p.Costs.Workload
	s := costmodel.Schedule{Kind: w.Schedule, Stages: int64(len(p.Topology.Devices)), Chunks: 1, MicroBatches: max(1, w.MicroBatches)}
	if s.Kind == "" {
		s.Kind = costmodel.OneFOneB
	}
	if s.Kind == costmodel.Interleaved {
		s.Chunks = max(2, w.VirtualStages)
	}
	return s
}

// piped reports a problem of stages.
func (p *Problem) piped() bool { return p.Costs.Workload.Strategy.Traits().Staged }

// passing lists sets of units that one stage holds: one that passes goes with
// the next ([costmodel.Unit.Passes]), and at the end of the model with the one
// before.
func (p *Problem) passing() [][]int {
	var sets [][]int
	units := p.Costs.Units
	for u := range len(units) - 1 {
		if units[u].Passes() {
			sets = append(sets, []int{u, u + 1})
		}
	}
	for u := len(units) - 1; u > 0 && units[u].Passes(); u-- {
		sets = append(sets, []int{u - 1, u})
	}
	return sets
}

// checkStages refuses what no pipeline runs.
func (l *layout) checkStages() error {
	s, items := l.p.schedule(), len(l.start)-1
	if !slices.ContainsFunc(l.p.Costs.Units, func(u costmodel.Unit) bool { return !u.Passes() }) {
		return &StageError{"strategy", int(s.Stages), 0, costmodel.Messagef("no unit of the model has parameters or declared costs, so that none can be a stage (device-map takes any)")}
	}
	if int(s.Stages*s.Chunks) > items {
		return tooFew(s, items)
	}
	if s.Stages == 1 && s.Chunks > 1 {
		return &StageError{"schedule", 1, items, costmodel.Messagef("interleaved runs go round the GPUs, and there is 1: 2 work, or another schedule")}
	}
	mode := l.p.Costs.Workload.Mode
	if mode == costmodel.Load || mode == costmodel.Infer && s.Kind != costmodel.Interleaved {
		return nil // forward only: a run a GPU takes any number
	}
	if err := s.Check(); err != nil {
		return &StageError{"micro_batches", int(s.Stages), items, l.refusedParts(err)}
	}
	return nil
}

// tooFew is the error of a model with fewer units than stages, and what works
// with as many.
func tooFew(s costmodel.Schedule, items int) error {
	gpus, runs := items/int(s.Chunks), items/int(s.Stages)
	if s.Chunks == 1 {
		return &StageError{"gpus", int(s.Stages), items, costmodel.Messagef("a pipeline with more stages than units: %d stages and %d units that can be one; at most %d GPUs work", s.Stages, items, gpus)}
	}
	var works []string
	if runs > 1 {
		works = append(works, fmt.Sprintf("%d runs a GPU", runs))
	}
	if gpus > 1 {
		works = append(works, fmt.Sprintf("%d GPUs", gpus))
	}
	if runs > 0 {
		works = append(works, "another schedule")
	}
	e := &StageError{"virtual_stages", int(s.Stages), items, costmodel.Messagef("a pipeline with more stages than units: %d GPUs × %d runs are %d stages, and %d units can be one", s.Stages, s.Chunks, s.Stages*s.Chunks, items)}
	if len(works) > 0 {
		e.Msg = costmodel.Messagef("%v; what works: %s", e.Msg, strings.Join(works, ", or "))
	}
	return e
}

// refusedParts is the error of a number of micro-batches, with those that
// divide the batch too where the numbers in it do not.
func (l *layout) refusedParts(err error) costmodel.Message {
	batch := l.p.Costs.Workload.Batch
	var e *costmodel.ScheduleError
	if errors.As(err, &e) && batch%e.Above == 0 && (e.Below == 0 || batch%e.Below == 0) {
		return costmodel.Messagef("%v", err)
	}
	return costmodel.Messagef("%v, and a divisor of the batch of %d (%s)", err, batch, l.p.schedule().Parts(batch))
}

// stagePeak is what stage d holds at its peak with items [a, b), in O(1).
func (l *layout) stagePeak(d, a, b int) int64 {
	return l.stages.Peak(l.stage(d, a, b), l.device[d].Workspace) + l.extra[d]
}

// stageFloor is what stage d holds at least, with items [a, b) and any more.
func (l *layout) stageFloor(d, a, b int) int64 {
	return l.stages.Floor(l.stage(d, a, b), l.device[d].Workspace, true) + l.extra[d]
}

func (l *layout) stage(d, a, b int) timeline.Rank {
	at := costmodel.Interval{First: l.start[a], End: l.start[b]}
	return timeline.Rank{Schedule: l.p.schedule(), Index: int64(d), Chunks: []costmodel.Interval{at}}
}

// pinEnds holds the chain's ends on the first and the last device, as a
// pipeline's stages are in device order and none is empty.
func (l *layout) pinEnds(fixed *pins) error {
	last := len(l.device) - 1
	for item, d := range map[int]int{0: 0, len(fixed.items) - 1: last} {
		if old := fixed.items[item]; old >= 0 && old != d {
			u := l.order[l.start[item]]
			for _, v := range l.order[l.start[item]:l.start[item+1]] {
				if _, ok := fixed.by[v]; ok {
					u = v
				}
			}
			name := l.p.Graph.Units[u].Name
			return &PatternError{"pin", fixed.by[u].Pattern, fmt.Sprintf("%q cannot be on device %d: a pipeline's stages are in device order, so that it is on device %d", name, old, d)}
		}
		fixed.items[item] = d
	}
	return nil
}

// noStage says that the pins leave a stage without a unit.
func (l *layout) noStage(e *chain.EmptyError) error {
	n := len(l.device)
	return &StageError{"pin", n, len(l.start) - 1, costmodel.Messagef("no map keeps the pins and has a unit on each of the %d stages: none is left for device %d", n, e.Device)}
}

// nameOf is the unit that an item is known by: under a pipeline its last, as
// what passes along comes first.
func (l *layout) nameOf(item int) int {
	if l.stages != nil {
		return l.order[l.start[item+1]-1]
	}
	return l.order[l.start[item]]
}
