package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// Rows are every strategy under every runtime, the best first.
func Rows(ctx context.Context, p *Problem) []Row {
	var out []Row
	for _, w := range p.variants() {
		if err := p.refuse(&w); err != nil {
			out = append(out, Row{Workload: w, Refused: err, gpus: p.gpus()})
			continue
		}
		out = append(out, p.row(ctx, w))
	}
	slices.SortStableFunc(out, func(a, b Row) int { return compare(&a, &b) })
	return out
}

// variants are the workloads to try, each with its strategy, runtime and
// schedule.
func (p *Problem) variants() []costmodel.Workload {
	var out []costmodel.Workload
	for _, s := range costmodel.Strategies() {
		if asked := p.Workload.Strategy; !asked.Traits().Open && asked != s {
			continue
		}
		for _, r := range s.Traits().Runtimes {
			if asked := p.Workload.Runtime; asked != "" && asked != r {
				continue
			}
			w := p.of(s, r)
			if !s.Traits().Staged {
				out = append(out, w)
				continue
			}
			for _, kind := range schedules(&p.Workload) {
				w.Schedule, w.VirtualStages = kind, 0
				if kind == costmodel.Interleaved {
					w.VirtualStages = p.Workload.VirtualStages
				}
				out = append(out, w)
			}
		}
	}
	return out
}

// of is the workload under a strategy: what another strategy's fields say is
// left out.
func (p *Problem) of(s costmodel.Strategy, r costmodel.Runtime) costmodel.Workload {
	w := p.Workload
	w.Strategy, w.Runtime, w.World = s, r, p.gpus()
	if s.Traits().Sequential {
		w.World = 0 // one process owns all GPUs
	}
	if !s.Traits().Staged {
		w.Schedule, w.VirtualStages = "", 0
	} else if w.MicroBatches == 0 {
		w.MicroBatches = microBatches(w.Batch, p.gpus())
	}
	if s.Traits().ZeroStage == 0 {
		w.ShardDegree = 0
	}
	return w
}

// microBatches is as many as fill a pipeline without making parts small:
// twice the stages, or the next number below that divides the batch.
func microBatches(batch, gpus int64) int64 {
	n := max(1, min(batch, 2*gpus))
	for batch%n != 0 {
		n--
	}
	return n
}

func schedules(w *costmodel.Workload) []costmodel.ScheduleKind {
	switch {
	case w.Schedule != "":
		return []costmodel.ScheduleKind{w.Schedule}
	case w.Mode != costmodel.Train: // without backward all are one
		return []costmodel.ScheduleKind{costmodel.GPipe}
	}
	return []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}
}

// refuse names the rows that make no sense on these GPUs.
func (p *Problem) refuse(w *costmodel.Workload) error {
	n, traits := p.gpus(), w.Strategy.Traits()
	switch {
	case traits.Replicated && len(p.Pins)+len(p.Together) > 0:
		return costmodel.Refuse(costmodel.Set("strategy", w.Strategy), "%v and %v place layers, and under %s every GPU runs them all", costmodel.Setting{Field: "pin"}, costmodel.Setting{Field: "together"}, w.Strategy)
	case n < traits.MinGPUs:
		return costmodel.Refuse(costmodel.Set("strategy", w.Strategy), "hsdp shards in groups and repeats the groups: it takes %d GPUs or more, not %d", traits.MinGPUs, n)
	case traits.ZeroStage > 0 && !traits.Sharded && w.Mode != costmodel.Train:
		return costmodel.Refuse(costmodel.Set("strategy", w.Strategy), "%s shards what training adds; %v has none of it (zero3 and fsdp shard the weights)", w.Strategy, costmodel.Set("mode", w.Mode))
	}
	return nil
}

// Fault is that of the first row whose answer failed its own check; nil where
// none did. It is no refusal, and no row is lost without a word.
func Fault(rows []Row) error {
	for i := range rows {
		var fault *planner.FaultError
		if w := &rows[i].Workload; errors.As(rows[i].Refused, &fault) {
			return fmt.Errorf("no answer for %s (%s): %w", strings.TrimSpace(fmt.Sprint(w.Strategy, " ", w.Schedule)), w.Runtime, rows[i].Refused)
		}
	}
	return nil
}
