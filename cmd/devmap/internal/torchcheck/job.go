package torchcheck

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// job is what the program is told of a plan.
type job struct {
	Model         string              `json:"model"`
	Params        int64               `json:"params"` // tied ones once
	What          string              `json:"what"`
	Bound         float64             `json:"bound"`
	Mode          costmodel.Mode      `json:"mode"`
	Strategy      costmodel.Strategy  `json:"strategy"`
	Batch         int64               `json:"batch"` // of a process
	MicroBatches  int64               `json:"micro_batches"`
	Seq           int64               `json:"seq"`
	NewTokens     int64               `json:"new_tokens"`
	Precision     costmodel.Precision `json:"precision"`
	Optimizer     string              `json:"optimizer"`
	Recompute     string              `json:"recompute"`
	Attention     string              `json:"attention"`
	LossOnly      bool                `json:"loss_only"`
	GradientViews bool                `json:"gradient_as_bucket_view"`
	LoRARank      int64               `json:"lora_rank"`
	LoRATargets   []string            `json:"lora_targets"`
	LoRAPrecision string              `json:"lora_precision"`
	ShardDegree   int64               `json:"shard_degree"`
	Schedule      string              `json:"schedule"`
	Map           devicemap.Flat      `json:"device_map"`
	Stages        [][2]any            `json:"stages"` // in order: the rank, its units
	Imbalance     float64             `json:"imbalance"`
	Devices       []peak              `json:"devices"`
	Notes         []string            `json:"notes"`
}

// peak is what a GPU is predicted to hold.
type peak struct {
	Allocated int64    `json:"peak_allocated_bytes"`
	Range     [2]int64 `json:"peak_range_bytes"`
	Slack     [2]int64 `json:"slack_bytes"`
	Used      int64    `json:"device_used_bytes"`
}

func jobOf(plan *devicemap.Plan) *job {
	workload := &plan.Workload
	made := &job{
		Model: plan.Model.Name, Params: plan.Model.Params, What: what(plan), Bound: bound(workload), Mode: workload.Mode, Strategy: workload.Strategy,
		Batch: workload.Batch, MicroBatches: max(1, workload.MicroBatches), Seq: workload.Seq, NewTokens: workload.NewTokens,
		Precision: workload.Precision, Optimizer: workload.Optimizer, Recompute: workload.Recompute,
		Attention: kernels[workload.Attention], LossOnly: workload.LossOnly || !workload.Strategy.Traits().Sequential,
		GradientViews: workload.GradientViews, LoRARank: workload.LoRARank, LoRATargets: workload.LoRATargets, LoRAPrecision: workload.LoRAPrecision,
		ShardDegree: workload.ShardDegree, Schedule: string(workload.Schedule), Imbalance: plan.Imbalance, Notes: plan.Warnings,
	}
	switch traits := workload.Strategy.Traits(); {
	case traits.Staged:
		made.Stages = stagesOf(plan.Stages)
	case traits.Sequential:
		made.Map = plan.DeviceMap
	}
	for i := range plan.Devices {
		told := &plan.Devices[i].Predicted
		device := peak{Allocated: told.PeakAllocatedBytes, Range: [2]int64{told.PeakAllocatedBytes, told.PeakAllocatedBytes}, Slack: told.SlackBytes, Used: told.DeviceUsedBytes}
		if len(told.PeakRangeBytes) == 2 {
			device.Range = [2]int64(told.PeakRangeBytes)
		}
		made.Devices = append(made.Devices, device)
	}
	return made
}

// stagesOf has a stage's device as its rank: a process a GPU.
func stagesOf(stages []devicemap.Stage) [][2]any {
	var made [][2]any
	for i := range stages {
		made = append(made, [2]any{stages[i].Device, stages[i].Units})
	}
	return made
}

// kernels are Transformers' names of attention's implementations.
var kernels = map[string]string{"": "sdpa", "sdpa": "sdpa", "eager": "eager", "flash": "flash_attention_2"}

// what is the plan's work in a few words.
func what(plan *devicemap.Plan) string {
	workload := &plan.Workload
	text := map[costmodel.Mode]string{costmodel.Train: "training", costmodel.Infer: "inference", costmodel.Load: "weights alone"}[workload.Mode]
	if workload.Mode != costmodel.Load {
		text += fmt.Sprintf(" %d × %d tokens", workload.Batch, workload.Seq)
	}
	if workload.NewTokens > 0 {
		text += fmt.Sprintf(" and %d more", workload.NewTokens)
	}
	text += fmt.Sprintf(", %s", workload.Precision)
	if workload.Mode == costmodel.Train {
		text += fmt.Sprintf(", %s, recompute %s", workload.Optimizer, workload.Recompute)
	}
	text += fmt.Sprintf(", %s", workload.Strategy)
	if workload.Schedule != "" {
		text += fmt.Sprintf(" %s in %d micro-batches", workload.Schedule, max(1, workload.MicroBatches))
	}
	return text + fmt.Sprintf(" over %d GPUs (%s)", len(plan.Devices), plan.Topology.Devices[0].Name)
}

// bound is how far a measured peak may be from the range that is predicted, as a
// share: what README states, which the measured rows were held to (make accuracy).
// A family that nobody has read brings a range of its own.
func bound(workload *costmodel.Workload) float64 {
	if workload.Strategy.Traits().Sequential {
		return 0.01
	}
	return 0.005
}
