package emit

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// Programs on Megatron-Core 0.19, each with the settings in a form of its own. The sources:
//   - Megatron-LM: megatron/training/arguments.py
//   - ms-swift 4.6: swift/megatron/arguments/megatron_args.py
//   - verl 0.9: trainer/config/actor/megatron_actor.yaml
//   - Megatron-Bridge 0.6: training/config.py. ConfigContainer.validate stops if the lengths of
//     model and dataset differ.
func init() {
	for _, program := range []struct{ name, file, start, note string }{
		{"megatron", "megatron.sh", "sh FILE", "run it in a checkout of Megatron-LM, or with MEGATRON that names one, with the arguments of the model and the data behind it"},
		{"ms-swift-megatron", "swift-megatron.sh", "sh FILE", "replace MODEL and DATASET in the file"},
		{"megatron-bridge", "bridge.yaml", "torchrun TORCHRUN SCRIPT --config-file FILE", "SCRIPT merges the file into the ConfigContainer of a recipe, as Megatron-Bridge's examples do"},
		{"verl", "verl.sh", "sh FILE", "give the model, the data and the rollout behind it; the plan counts the actor's step alone, not rollout, reference and critic"},
	} {
		write := func(to io.Writer, input *Input) error { return megatronFile(to, program.file, input.Plan) }
		command := func(plan *devicemap.Plan, file string) string {
			start := program.start
			if made, err := cutOf(plan, "Megatron"); err == nil && serial(plan, made) && program.file == "bridge.yaml" {
				start = "env CUDA_DEVICE_MAX_CONNECTIONS=1 " + start
			}
			return strings.NewReplacer("TORCHRUN", torchrun(plan), "FILE", file).Replace(start)
		}
		target := register(&Target{
			Name: program.name, File: program.file, Example: "llama-3.1-8b --gpus 4 --gpu h200-141gb --mode train --strategy pipeline --batch 8 --micro-batches 8", Golden: []string{"job-stages"},
			needs: []need{equalHosts, training(program.name + " trains"), megatronPlan}, Write: write,
			Usage: func(input *Input, file string) (usage, note string) {
				return command(input.Plan, quote.Path(file)), program.note + leftOut(program.name, &input.Plan.Workload) + otherMegatron(input.Plan)
			},
			Folder: func(input *Input) (map[string]string, error) {
				return folder(input, program.file, write, command(input.Plan, here(program.file)))
			},
		})
		if program.name == "verl" { // Ray starts its processes
			target.Folder = nil
		}
	}
}

// megatronPlan demands a pipeline, or Megatron's data parallelism.
func megatronPlan(plan *devicemap.Plan) error {
	if workload := &plan.Workload; workload.Strategy.Traits().Staged && workload.Runtime != costmodel.Devmap && workload.Runtime != "torchtitan" || workload.Preset == "ms-swift-megatron" {
		return nil
	}
	return &refusal{costmodel.Messagef("the plan for %q has the strategy %s under %s, which is not Megatron's: plan it with %v, or with %v", plan.Model.Name, plan.Workload.Strategy, plan.Workload.Runtime,
		costmodel.Set("runtime", "megatron"), costmodel.Set("preset", "ms-swift-megatron"))}
}

// leftOut names the settings of a plan that a program's file does not have.
func leftOut(program string, workload *costmodel.Workload) string {
	var left []string
	if workload.Loss != "" {
		left = append(left, fmt.Sprintf("--loss %s", workload.Loss))
	}
	if program == "verl" { // its data has lengths, its configuration bfloat16 or float16
		left = append(left, fmt.Sprintf("--seq %d", workload.Seq))
		if workload.Precision == costmodel.FP32True {
			left = append(left, fmt.Sprintf("--precision %s", workload.Precision))
		}
	}
	if len(left) == 0 {
		return ""
	}
	return "; the file leaves out " + strings.Join(left, " and ")
}

// otherMegatron warns of a pipeline's peaks, which are PyTorch's.
func otherMegatron(plan *devicemap.Plan) string {
	if plan.Workload.Preset == "ms-swift-megatron" || plan.Workload.Runtime == "megatron" {
		return ""
	}
	return "; the plan's peaks are those of torch.distributed.pipelining: Megatron holds other bytes on each GPU"
}

// layout is Megatron's text of a cut: E for the embedding, t for a block, L for the
// loss, and stage i on rank i mod the pipeline's size. Virtual stages follow from it
// (core/transformer/pipeline_parallel_layer_layout.py).
func (made *cut) layout() string {
	stages := make([]string, len(made.parts))
	for i, part := range made.parts {
		if i == 0 {
			stages[i] = "E"
		}
		switch {
		case part.layers > 1:
			stages[i] += fmt.Sprintf("t*%d", part.layers)
		case part.layers == 1:
			stages[i] += "t"
		}
		if i == len(made.parts)-1 {
			stages[i] += "L"
		}
	}
	return strings.Join(stages, "|")
}

// megatronFile writes a program's file.
func megatronFile(to io.Writer, file string, plan *devicemap.Plan) error {
	workload := &plan.Workload
	made, err := cutOf(plan, "Megatron")
	switch {
	case err != nil:
		return err
	case workload.Float8 != "" && (file == "bridge.yaml" || file == "verl.sh"):
		return refused("the plan for %q has float8 %s, and the recipe of this program sets it: emit --for megatron, or emit --for ms-swift-megatron", plan.Model.Name, workload.Float8)
	case workload.Schedule == costmodel.GPipe:
		return made.refuse("the schedule gpipe, and Megatron runs 1f1b and interleaved")
	case workload.Optimizer != costmodel.AdamW || workload.LoRARank > 0 || workload.EMA:
		return made.refuse("the optimizer %s, LoRA rank %d, EMA %t, and Megatron's is adamw on all weights", workload.Optimizer, workload.LoRARank, workload.EMA)
	}
	own := workload.Runtime == "megatron" // else sequences are cut as Megatron recommends
	half := map[costmodel.Precision]string{costmodel.BF16Mixed: "bf16", costmodel.BF16True: "bf16", costmodel.FP16Mixed: "fp16", costmodel.FP16True: "fp16"}[workload.Precision]
	return form(to, file, plan, map[string]any{
		"TP": made.tp, "PP": made.ranks, "Layout": made.layout(), "Micro": made.perMicro, "Global": made.step * made.dp, "Seq": workload.Seq,
		"CP": made.cp, "EP": made.ep, "Cut": made.tp > 1 && (!own || workload.SequenceParallel), "Whole": own && made.shard == 1 && made.dp*made.cp > 1, "NoMask": own,
		"Recompute": made.recompute, "Half": half, "Float8": workload.Float8, "Torchrun": torchrun(plan), "Serial": serial(plan, made),
	})
}

// serial reports that Megatron stops unless kernels have one queue, so that a GPU starts
// them in order (training/arguments.py, validate_args: before Blackwell).
func serial(plan *devicemap.Plan, made *cut) bool {
	major, _, _ := strings.Cut(plan.Topology.Devices[0].ComputeCapability, ".")
	return (made.tp > 1 || made.cp > 1) && len(major) < 2
}
