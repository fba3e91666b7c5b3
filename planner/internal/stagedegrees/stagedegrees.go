package stagedegrees

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/stagechain"
)

// Method implements [instance.Method] for pipelines whose stages choose among the forms of the
// tables.
type Method struct{ Forms []*costmodel.Table }

// Serves implements [instance.Method]. The planner calls this method explicitly.
func (Method) Serves(*instance.Instance) bool { return false }

// Why implements [instance.Method].
func (Method) Why(in *instance.Instance) string {
	if in.Objective == instance.Time {
		return "stages of any form: a dynamic program over cuts, GPUs and forms for the slowest stage and the sum of all, then moves that shorten the step as it is played; the bound is a dynamic program over what a stage, and the way through those behind it, take at least"
	}
	return "bisection over the largest share, a dynamic program over cuts, GPUs and forms of the stages, from the last stage on, for each: what a stage holds depends on how many follow it"
}

// problem is an instance in the form of the dynamic programs.
type problem struct {
	items *instance.Items
	in    *instance.Instance // with all its GPUs
	forms []*form
	// sizes are the numbers of GPUs of the forms, and of lists the forms of each size.
	sizes []int
	of    [][]int
	most  int // number of stages
}

// cost returns the cost of items [a, b) in a form, with behind stages after it.
type cost func(form, a, b, behind int) float64

func newProblem(in *instance.Instance, tables []*costmodel.Table) (*problem, error) {
	items, err := in.On(in.Topology.Devices[:1]).Items()
	if err != nil {
		return nil, err
	}
	out := &problem{items: items, in: in, most: min(items.Count(), len(in.Topology.Devices))}
	whole := *items
	wide := *items.In
	wide.Topology = in.Topology
	whole.In = &wide
	out.items = &whole
	for _, table := range tables {
		one := newForm(table, out.items)
		index := slices.Index(out.sizes, one.gpus)
		if index < 0 {
			index = len(out.sizes)
			out.sizes, out.of = append(out.sizes, one.gpus), append(out.of, nil)
		}
		out.of[index] = append(out.of[index], len(out.forms))
		out.forms = append(out.forms, one)
	}
	workload := &in.Costs.Workload
	if workload.Schedule != costmodel.GPipe { // 1F1B needs at least as many micro-batches as stages
		out.most = min(out.most, int(workload.MicroBatches))
	}
	return out, nil
}

// share returns the share of a budget that a stage needs.
func (problem *problem) share(form, a, b, behind int) float64 {
	return float64(problem.forms[form].peak(problem, a, b, behind)) / float64(problem.in.Topology.Devices[0].Budget())
}

// fits reports that a stage is within the caps. Its memory does not fall with more stages after it,
// so bisection finds the most with which it fits.
func (problem *problem) fits(form, a, b, after int) bool {
	one := problem.forms[form]
	width := problem.items.Count() + 1
	if one.deepest == nil {
		one.deepest = slices.Repeat([]int16{unknown}, width*width)
	}
	deepest := &one.deepest[a*width+b]
	if *deepest == unknown {
		*deepest = int16(sort.Search(problem.most, func(after int) bool {
			return one.peak(problem, a, b, after) > problem.in.Caps[0]
		}) - 1)
	}
	return after <= int(*deepest)
}

// unknown marks a stage whose depth is not computed yet.
const unknown = -2

// chain returns the problem of package stagechain with a cost of a stage. For each size it uses the
// cheapest form.
func (problem *problem) chain(steady, fill float64, of cost) *stagechain.Problem {
	return &stagechain.Problem{
		Units: problem.items.Count(), Devices: len(problem.in.Topology.Devices), MostStages: problem.most,
		Sizes: problem.sizes, Steady: steady, Fill: fill,
		Time: func(a, b, size, behind int) float64 {
			_, least := problem.best(a, b, size, behind, of)
			return least
		},
	}
}

func (problem *problem) best(a, b, size, behind int, of cost) (form int, least float64) {
	form, least = -1, math.Inf(1)
	for _, one := range problem.of[size] {
		if got := of(one, a, b, behind); got < least {
			form, least = one, got
		}
	}
	return form, least
}

// stage is items [a, b) in a form.
type stage struct{ form, a, b int }

// stagesOf returns the stages of a solution, each in its best form.
func (problem *problem) stagesOf(found []stagechain.Stage, of cost) []stage {
	out := make([]stage, len(found))
	for i, one := range found {
		form, _ := problem.best(one.From, one.To, one.Size, len(found)-1-i, of)
		out[i] = stage{form, one.From, one.To}
	}
	return out
}

// placed returns a map of the stages, by their first GPUs, and the table with their tables.
func (problem *problem) placed(stages []stage) (devicemap.Map, *costmodel.Table) {
	out, costs := make(devicemap.Map, len(problem.in.Graph.Units)), *problem.in.Costs
	gpu := 0
	for _, one := range stages {
		for _, unit := range problem.items.Order[problem.items.Start[one.a]:problem.items.Start[one.b]] {
			out[unit] = devicemap.Device(gpu)
		}
		costs.Stages = append(costs.Stages, problem.forms[one.form].table)
		gpu += problem.forms[one.form].gpus
	}
	return out, &costs
}

// Solve implements [instance.Method]. The answer has the tables of its stages.
func (method Method) Solve(ctx context.Context, in *instance.Instance, _ instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	problem, err := newProblem(in, method.Forms)
	if err != nil {
		return nil, err
	}
	if in.Objective == instance.Time {
		return problem.shortest(ctx)
	}
	return problem.level(ctx)
}

// level minimizes the largest share.
func (problem *problem) level(ctx context.Context) (*instance.Answer, error) {
	found, err := stagechain.Solve(ctx, problem.chain(1, 0, problem.share))
	if err != nil {
		return nil, problem.none(err)
	}
	out := &instance.Answer{
		Claim:  certificate.Claim{Value: found.Value, LowerBound: found.LowerBound, Bound: "search", Rounding: certificate.Exact, Stopped: found.Early()},
		Proved: found.Optimal(),
	}
	out.Map, out.Costs = problem.placed(problem.stagesOf(found.Stages, problem.share))
	return out, nil
}

// none returns the error for stages that cannot fill the GPUs.
func (problem *problem) none(err error) error {
	if !errors.Is(err, stagechain.ErrNone) {
		return err
	}
	return &instance.StageError{Field: "gpus", Devices: len(problem.in.Topology.Devices), Units: problem.items.Count(), Msg: costmodel.Messagef(
		"no stages of the forms that the model takes fill the %d GPUs: at most %d stages, of %d units that can be one (more %v, a larger %v or %v may)",
		len(problem.in.Topology.Devices), problem.most, problem.items.Count(), costmodel.Setting{Field: "micro_batches"}, costmodel.Setting{Field: "batch"}, costmodel.Set("tp", "auto"))}
}
