package emit

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// titanModule is the name of the module in Python.
const titanModule = "devmap_plan"

// torchtitan reads its configuration from a function of a Python module, and a schedule
// of a pipeline from a file next to it: -o is a folder.
var _ = register(&Target{
	Name: "torchtitan", File: "torchtitan", Config: true, OnlyFolder: true,
	Help: `--for torchtitan writes a folder: a Python module with the configuration, the
schedule of a pipeline, and scripts that start the job on one host or several.`,
	Example: "llama-3.2-1b --gpus 2 --gpu h200-141gb --preset torchtitan --batch 2 --seq 2048", Golden: []string{"job-titan", "job-titan-stages"},
	needs: []need{equalHosts, training("torchtitan trains"), titanPlan}, Write: titanConfig,
	Usage: func(input *Input, file string) (usage, note string) {
		note = "replace the names in capitals in " + titanModule + ".py"
		if input.Plan.Workload.Strategy.Traits().Staged && input.Plan.Workload.Runtime != "torchtitan" {
			note += "; the plan's peaks are those of torch.distributed.pipelining with Transformers' modules: torchtitan's own layers hold other bytes"
		}
		return "sh " + quote.Path(file+"/run.sh"), note
	},
	Caveat: func(input *Input) string {
		if model, err := decoderOf(input); err != nil || flavourOf(&model) != "" {
			return ""
		}
		return "torchtitan has no size of its own for this model, and runs Transformers' modules with the whole loss and no CUDA graphs: the plan counts torchtitan's own layers"
	},
	Folder: func(input *Input) (map[string]string, error) {
		files, err := folder(input, titanModule+".py", titanConfig, titanCommand(input.Plan))
		if workload := &input.Plan.Workload; err != nil || !workload.Strategy.Traits().Staged || workload.Runtime == "torchtitan" && workload.PP.Count() == 1 {
			return files, err
		}
		var schedule bytes.Buffer
		err = torchSchedule(&schedule, input)
		files["schedule.csv"] = schedule.String()
		return files, err
	},
})

func titanCommand(plan *devicemap.Plan) string {
	return "torchrun " + torchrun(plan) + " -m torchtitan.train --module " + titanModule + " --config plan"
}

// titanPlan demands torchtitan's own preset, or a pipeline of torch.
func titanPlan(plan *devicemap.Plan) error {
	workload := &plan.Workload
	if workload.Strategy.Traits().Staged && workload.Runtime != costmodel.Devmap && workload.Runtime != "megatron" || slices.Contains([]string{"torchtitan", "torchtitan:eager"}, workload.Preset) {
		return nil
	}
	return &refusal{costmodel.Messagef("the plan for %q has the strategy %s, and does not count torchtitan's memory: plan it with %v, or with %v", plan.Model.Name, workload.Strategy,
		costmodel.Set("preset", "torchtitan"), costmodel.Set("runtime", "torchtitan"))}
}

// flavours are the sizes that torchtitan has, by hidden size, blocks and width of the
// MLP (torchtitan 0.3.0, models/llama3/__init__.py and models/qwen3/__init__.py).
var flavours = map[string]string{
	"llama 2048 16 8192 128256": "1B", "llama 3072 28 8192 128256": "3B", "llama 4096 32 14336 128256": "8B", "llama 8192 80 28672 128256": "70B", "llama 16384 126 53248 128256": "405B",
	"qwen3 1024 28 3072 151936": "0.6B", "qwen3 2048 28 6144 151936": "1.7B", "qwen3 2560 36 9728 151936": "4B", "qwen3 4096 36 12288 151936": "8B", "qwen3 5120 40 17408 151936": "14B", "qwen3 5120 64 25600 151936": "32B",
	"qwen3_moe 2048 48 6144 151936": "30B-A3B", "qwen3_moe 4096 94 12288 151936": "235B-A22B",
}

// flavourOf is the size of torchtitan's own that a model has, or empty.
func flavourOf(model *decoder) string {
	if model.Quantized != nil || model.Type == "llama" && !model.llamaScaled() {
		return ""
	}
	return flavours[fmt.Sprintf("%s %d %d %d %d", model.Type, model.Hidden, model.Layers, model.Intermediate, model.Vocab)]
}

// titanConfig writes the module.
func titanConfig(to io.Writer, input *Input) error {
	plan, workload := input.Plan, &input.Plan.Workload
	model, err := decoderOf(input)
	if err != nil {
		return err
	}
	made, err := cutOf(plan, "torchtitan")
	if err == nil {
		err = cmp.Or(made.ofLayers(model.Layers), titanSettings(made, workload, &model))
	}
	if err != nil {
		return err
	}
	flavour, batch, loss := flavourOf(&model), made.perMicro, "CrossEntropyLoss.Config()"
	native := flavour != ""
	if native {
		loss = "CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(spec))"
	}
	if native && workload.Loss == "chunked" {
		loss = "ChunkedLossWrapper.Config(loss_fn=" + loss + ")"
	}
	if made.ranks == 1 {
		made.parts = nil // no pipeline: micro-batches are accumulated
	}
	if len(made.parts) > 0 {
		batch = made.step
	}
	var parts []string
	for i := range made.parts {
		parts = append(parts, pythonList(made.titanNames(i, native)))
	}
	types := titanTypes[workload.Precision]
	shards := max(1, made.shard/made.cp)
	return form(to, "torchtitan.py", plan, map[string]any{
		"Native": native, "Family": map[string]string{"llama": "llama3", "qwen3": "qwen3", "qwen3_moe": "qwen3"}[model.Type], "Flavour": cmp.Or(flavour, "full"),
		"Implementation": titanOptimizers[workload.Optimizer], "Loss": loss, "Checkpointing": titanCheckpoints[made.recompute],
		"Batch": batch, "Global": made.step * made.dp, "Seq": workload.Seq, "Type": types[0], "Compute": types[1], "Offload": pythonBool(workload.HostShards),
		"Eager":    pythonBool(!native || workload.Strategy.Traits().Staged || workload.Preset == "torchtitan:eager"),
		"Replicas": made.dp / shards, "Shards": shards, "TP": made.tp, "CP": made.cp, "EP": made.ep, "PP": made.ranks,
		"Parts": parts, "Micro": made.perMicro, "Schedule": titanSchedules[workload.Schedule],
	})
}

// Torchtitan's names of a plan's values. Others are refused.
var (
	titanTypes       = map[costmodel.Precision][]string{costmodel.BF16True: {"bfloat16", "bfloat16"}, costmodel.BF16Mixed: {"float32", "bfloat16"}, costmodel.FP32True: {"float32", "float32"}}
	titanCheckpoints = map[string]string{costmodel.RecomputeNone: "None", costmodel.RecomputeFull: "FullAC.Config()", "selective": "SelectiveAC.Config()"}
	titanOptimizers  = map[string]string{costmodel.AdamW: "fused", "adamw-foreach": "foreach"}
	titanSchedules   = map[costmodel.ScheduleKind]string{"": "1F1B", costmodel.OneFOneB: "1F1B", costmodel.GPipe: "GPipe", costmodel.Interleaved: "Interleaved1F1B"}
)

func pythonBool(on bool) string {
	if on {
		return "True"
	}
	return "False"
}

// titanNames are the modules of a stage in torchtitan's names, which drops unknown ones
// in silence (distributed/pipeline_parallel.py, _split_module): each block is in one
// stage, as cutOf has checked. Transformers' models have rotary embeddings on each.
func (made *cut) titanNames(stage int, native bool) (names []string) {
	if stage == 0 {
		names = append(names, "tok_embeddings")
	}
	for layer := range made.parts[stage].layers {
		names = append(names, fmt.Sprintf("layers.%d", made.parts[stage].first+layer))
	}
	if stage == len(made.parts)-1 {
		names = append(names, "norm", "lm_head")
	}
	if !native {
		names = append(names, "rotary_emb")
	}
	return names
}

// titanSettings refuses what torchtitan does not have.
func titanSettings(made *cut, workload *costmodel.Workload, model *decoder) error {
	switch {
	case model.Tied && made.ranks > 1: // models/common/decoder.py, update_from_config
		return made.refuse("a pipeline of a model whose head is its embedding")
	case titanCheckpoints[made.recompute] == "":
		return made.refuse("recompute %s", made.recompute)
	case titanTypes[workload.Precision] == nil:
		return made.refuse("the precision %s (bf16-true, bf16-mixed and 32-true are)", workload.Precision)
	case titanOptimizers[workload.Optimizer] == "":
		return made.refuse("the optimizer %s (adamw and adamw-foreach are)", workload.Optimizer)
	case workload.LoRARank > 0 || workload.Quantize != "" || workload.EMA || workload.Float8 != "" || workload.Liger:
		return made.refuse("adapters, quantised or 8-bit layers, Liger's layers or a moving average")
	case workload.Compile || workload.OptimizerInBackward || workload.Loss == "fused" || workload.Loss == "tiled":
		return made.refuse("torch.compile, an optimizer in backward, or a fused or tiled loss")
	}
	return nil
}
