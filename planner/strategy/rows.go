package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Rows are every strategy under every runtime, the best first. The error is of the first row whose
// answer failed its own check: not a refusal, but a bug. The rows are returned anyway.
//
// A strategy, runtime or schedule of the problem's workload restricts the rows; [costmodel.Auto]
// and none do not. 0 micro-batches are as many as fill a pipeline. The problem's Costs are not
// read. A diffusion pipeline has one row.
func Rows(ctx context.Context, problem planner.Problem, options Options) ([]Row, error) {
	var err error
	if problem.Topology, err = catalogue.Named(problem.Topology, cmp.Or(problem.Workload.Mode, costmodel.Infer)); err != nil {
		return nil, err
	}
	rows, err := rowsOf(ctx, &comparison{Problem: problem, Options: options})
	for i := range rows {
		followPools(ctx, &problem, &rows[i])
	}
	return rows, err
}

// rowsOf is [Rows] on devices whose names are resolved.
func rowsOf(ctx context.Context, of *comparison) ([]Row, error) {
	if of.Diffusion != nil {
		return []Row{of.solved(ctx, Row{}, of.Problem)}, nil
	}
	var out []Row
	for _, workload := range of.variants() {
		if err := of.refuse(&workload); err != nil {
			out = append(out, Row{Workload: workload, Refused: err})
			continue
		}
		if late := of.late(ctx, out); late != nil {
			out = append(out, Row{Workload: workload, Refused: late})
			continue
		}
		out = append(out, of.row(ctx, workload))
	}
	out = append(out, of.automatic()...)
	slices.SortStableFunc(out, func(a, b Row) int { return compare(&a, &b) })
	return out, failed(out)
}

// quick is the largest number of units × devices for which a row takes a few milliseconds. Such
// rows are answered even after the context has ended.
const quick = 1 << 14

// late refuses a row of a large problem once the context has ended and another row has an answer.
func (of *comparison) late(ctx context.Context, rows []Row) error {
	if len(of.Graph.Units)*len(of.Topology.Devices) <= quick || ctx.Err() == nil {
		return nil
	}
	if !slices.ContainsFunc(rows, func(row Row) bool { return row.Refused == nil }) {
		return nil
	}
	return errLate
}

// errLate is the refusal of a row of a large problem after the time ended.
var errLate = errors.New("not looked at: the time ended before")

// variants are the workloads to try, each with its strategy, runtime and schedule.
func (of *comparison) variants() []costmodel.Workload {
	var out []costmodel.Workload
	for _, strategy := range costmodel.Strategies() {
		if asked := of.Workload.Strategy; !asked.Traits().Open && asked != strategy {
			continue
		}
		for _, runtime := range strategy.Traits().Runtimes {
			if !of.tries(runtime) {
				continue
			}
			_, program := estimate.Native(nil)
			workload := of.under(strategy, runtime)
			switch {
			case runtime == program && workload.ShardDegree == 0:
				out = append(out, of.degrees(workload)...)
			case strategy.Traits().Staged:
				out = append(out, of.scheduled(workload)...)
			default:
				out = append(out, workload)
			}
		}
	}
	return out
}

// tries reports that a comparison has rows of a runtime. If none is asked for, it has none of
// devmap, megatron and torchtitan, which users name, and of other models' programs.
func (of *comparison) tries(runtime string) bool {
	if asked := of.Workload.Runtime; asked != "" {
		return asked == runtime
	}
	_, native := estimate.Native(of.Graph)
	_, program := estimate.Native(nil)
	if (runtime == program) != (native == program) && (runtime == program || of.open()) {
		return false
	}
	return !slices.Contains([]string{costmodel.Devmap, "megatron", "torchtitan"}, runtime)
}

// scheduled are the workload under each schedule.
func (of *comparison) scheduled(workload costmodel.Workload) []costmodel.Workload {
	var out []costmodel.Workload
	for _, kind := range schedules(&of.Workload) {
		workload.Schedule, workload.VirtualStages = kind, 0
		if kind == costmodel.Interleaved {
			workload.VirtualStages = of.Workload.VirtualStages
		}
		out = append(out, workload)
	}
	return out
}

// degrees are the workload sharded over each divisor of the number of GPUs, which JAX leaves open.
// A policy runs on one.
func (of *comparison) degrees(workload costmodel.Workload) []costmodel.Workload {
	var out []costmodel.Workload
	for degree := int64(1); degree <= of.gpus(); degree++ {
		if of.gpus()%degree == 0 && (degree == 1 || workload.Mode != costmodel.Infer) {
			workload.ShardDegree = degree
			out = append(out, workload)
		}
	}
	return out
}

// under is the workload under a strategy, without fields of other strategies.
func (of *comparison) under(strategy costmodel.Strategy, runtime string) costmodel.Workload {
	workload := of.Workload
	workload.Strategy, workload.Runtime = strategy, runtime
	if of.Under != nil {
		of.Under(&workload)
	}
	if !strategy.Traits().Staged {
		workload.Schedule, workload.VirtualStages = "", 0
	}
	of.share(&workload)
	if strategy.Traits().Staged && workload.MicroBatches == 0 {
		workload.MicroBatches = microBatches(workload.Batch, of.gpus())
	}
	if strategy.Traits().ZeroStage == 0 {
		workload.ShardDegree = 0
	}
	return workload
}

// microBatches is as many as fill a pipeline without making parts small: twice the stages, or the
// next number below that divides the batch.
func microBatches(batch, gpus int64) int64 {
	number := max(1, min(batch, 2*gpus))
	for batch%number != 0 {
		number--
	}
	return number
}

func schedules(workload *costmodel.Workload) []costmodel.ScheduleKind {
	switch {
	case workload.Schedule != "":
		return []costmodel.ScheduleKind{workload.Schedule}
	case workload.Mode != costmodel.Train: // without backward all are one
		return []costmodel.ScheduleKind{costmodel.GPipe}
	}
	return []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved}
}

// refuse names the rows that make no sense on these GPUs.
func (of *comparison) refuse(workload *costmodel.Workload) error {
	number, traits := of.gpus(), workload.Strategy.Traits()
	switch {
	case traits.Replicated && len(of.Pins)+len(of.Together) > 0:
		return costmodel.Refuse(costmodel.Set("strategy", workload.Strategy), "%v and %v place layers, and under %s every GPU runs them all", costmodel.Setting{Field: "pin"}, costmodel.Setting{Field: "together"}, workload.Strategy)
	case number < traits.MinGPUs:
		return costmodel.Refuse(costmodel.Set("strategy", workload.Strategy), "hsdp shards in groups and repeats the groups: it takes %d GPUs or more, not %d", traits.MinGPUs, number)
	case traits.ZeroStage > 0 && !traits.Sharded && workload.Mode != costmodel.Train:
		return costmodel.Refuse(costmodel.Set("strategy", workload.Strategy), "%s shards what training adds; %v has none of it (zero3 and fsdp shard the weights)", workload.Strategy, costmodel.Set("mode", workload.Mode))
	}
	return nil
}

// failed is the fault of the first row whose answer failed its own check, so that no row is lost
// silently. Nil if there is none.
func failed(rows []Row) error {
	for i := range rows {
		var fault *certificate.FaultError
		if workload := &rows[i].Workload; errors.As(rows[i].Refused, &fault) {
			return fmt.Errorf("no answer for %s (%s): %w", strings.TrimSpace(fmt.Sprint(workload.Strategy, " ", workload.Schedule)), workload.Runtime, rows[i].Refused)
		}
	}
	return nil
}
