package emit

import (
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// torch's runtime of pipelines reads the actions of each rank, in order.
var _ = register(&Target{
	Name: "torch-schedule", Aliases: []string{"torch", "csv"}, File: "schedule.csv",
	Example: "llama-3.2-1b --gpus 2 --mode train --strategy pipeline --batch 2 --micro-batches 2", Golden: []string{"pipeline"},
	needs: []need{stages, ownStages, training("torch's loader wants a backward of every forward")}, Write: torchSchedule, Usage: torchRuntime,
})

// ownStages refuses the plan of an engine that makes the schedule itself.
func ownStages(plan *devicemap.Plan) error {
	if engine := plan.Workload.Runtime; engine == "megatron" || engine == "torchtitan" {
		return refused("the plan for %q is %s's, whose stages and peaks are not torch's: emit --for %s", plan.Model.Name, engine, engine)
	}
	return nil
}

// torchSchedule is what each rank of a pipeline runs, in torch's compute-only form:
// a row a rank, in the order of their first stages.
func torchSchedule(to io.Writer, input *Input) error {
	ranks, schedule, err := staged(input.Plan)
	if err != nil {
		return err
	}
	return writeOrder(to, ranks, order.Engine(schedule, ranks, true))
}

// maxCells bounds a schedule that is written: more than a file is read for.
const maxCells = 1 << 24

// staged is the rank of each stage of the plan, and the schedule that they run.
func staged(plan *devicemap.Plan) ([]int, costmodel.Schedule, error) {
	ranks, count := ranksOf(plan.Stages)
	if count == 0 {
		return nil, costmodel.Schedule{}, fmt.Errorf("the plan for %q has no stages", plan.Model.Name)
	}
	chunks := (len(ranks) + count - 1) / count
	schedule := costmodel.NewSchedule(&plan.Workload, int64(count), int64(chunks))
	if schedule.Kind.Vee() && len(ranks) != 2*count {
		return nil, schedule, fmt.Errorf("the plan for %q has %d stages on %d GPUs: under %s each GPU has two, in the form of a V", plan.Model.Name, len(ranks), count, schedule.Kind)
	}
	if err := schedule.Check(); err != nil {
		return nil, schedule, fmt.Errorf("the plan for %q: %w", plan.Model.Name, err)
	}
	passes := int64(2)
	if schedule.Kind.Split() {
		passes = 3
	}
	if cells := passes * int64(len(ranks)) * schedule.MicroBatches; cells > maxCells {
		return nil, schedule, refused("the plan for %q has %d actions: more than the %d of a schedule that is written", plan.Model.Name, cells, maxCells)
	}
	for stage, rank := range ranks {
		if place, _ := schedule.Place(int64(stage)); int64(rank) != place || stage >= count && !schedule.Kind.Chunked() || plan.Stages[stage].Device < 0 {
			way := "round the GPUs"
			if schedule.Kind.Vee() {
				way = "over the GPUs and back"
			}
			return nil, schedule, fmt.Errorf("the plan for %q has stage %d on device %v: under %s its stages go %s, %d a GPU", plan.Model.Name, stage, plan.Stages[stage].Device, schedule.Kind, way, chunks)
		}
	}
	return ranks, schedule, nil
}

// ranksOf numbers the devices in the order of their first stages: a rank each.
func ranksOf(stages []devicemap.Stage) (ranks []int, count int) {
	rank := map[devicemap.Device]int{}
	for i := range stages {
		found, ok := rank[stages[i].Device]
		if !ok {
			found = len(rank)
			rank[stages[i].Device] = found
		}
		ranks = append(ranks, found)
	}
	return ranks, len(rank)
}

// torchRuntime is what reads the file: the class of schedules that come from
// elsewhere (torch 2.11 to 2.15, distributed/pipelining/schedules.py).
func torchRuntime(input *Input, file string) (usage, note string) {
	plan, workload := input.Plan, &input.Plan.Workload
	usage = fmt.Sprintf("_PipelineScheduleRuntime(stages, n_microbatches=%d, loss_fn=LOSS)._load_csv(%s, format=\"compute_only\")", max(1, workload.MicroBatches), quote.Python(file))
	ranks, schedule, err := staged(plan)
	switch {
	case err != nil:
		return usage, ""
	case workload.Runtime == costmodel.Devmap && schedule.Kind.Vee():
		return usage, fmt.Sprintf("row r runs stages r and %d−r, and torch finds this in the file; %s", len(ranks)-1, otherBytes(plan, "torch"))
	case workload.Runtime == costmodel.Devmap:
		return usage, otherBytes(plan, "torch")
	case schedule.Kind != costmodel.Interleaved:
		return usage, fmt.Sprintf("the plan's peaks are those of torch's own class for %s, which needs no file; the runtime that reads one was not measured", schedule.Kind)
	}
	return usage, fmt.Sprintf("row r is rank r, which runs stages r, r+%d, …: %d in all", schedule.Stages, len(ranks))
}
