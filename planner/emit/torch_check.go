package emit

import (
	"cmp"
	"embed"
	stdjson "encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// torch-check is a program in Python that runs the plan's workload on PyTorch and
// compares the peaks of the GPUs with those of the plan. It is one file: the parts
// in the folder python that the plan's strategy needs, the plan's figures and the
// model's config.
var _ = register(&Target{
	Name: "torch-check", File: "check.py", Config: true,
	Help: `--for torch-check writes a Python program in one file. It builds the model from
its config with random weights, runs three steps of the plan on PyTorch, and
compares each GPU's peak with the plan. It exits with status 4 if a peak is
outside the bound that it prints. It needs torch and transformers, for a device
map also accelerate, and no checkpoint.`,
	Example: "llama-3.2-1b --gpus 2 --mode train", Run: "python3 check.py", Golden: []string{"training"},
	Write: torchCheck, Usage: func(input *Input, file string) (usage, note string) { return runCheck(input.Plan, file), "" },
})

//go:embed python
var python embed.FS

// torchCheck writes the program. What it could not run as the plan counts it is
// an error.
func torchCheck(to io.Writer, input *Input) error {
	plan, config := input.Plan, input.Config
	if err := uncheckable(plan, config); err != nil {
		return err
	}
	task, err := literal(jobOf(plan))
	if err != nil {
		return err
	}
	fields, err := literal(jsontext.Value(config))
	if err != nil {
		return err
	}
	text := new(strings.Builder)
	fmt.Fprintf(text, aboutCheck, runCheck(plan, "FILE"))
	parts := []string{"start", "device_map", "end"}
	switch traits := plan.Workload.Strategy.Traits(); {
	case traits.Staged:
		parts = []string{"start", "ranks", "stages", "end"}
	case traits.Replicated:
		parts = []string{"start", "ranks", "replicas", "end"}
	}
	for _, part := range parts {
		source, err := python.ReadFile("python/" + part + ".py")
		if err != nil {
			return err
		}
		if part != "start" {
			text.WriteString("\n\n")
		}
		text.Write(source)
	}
	_, err = strings.NewReplacer("@JOB@", task, "@CONFIG@", fields).WriteString(to, text.String())
	return err
}

// literal is JSON in a raw string between three quotation marks: in
// JSON no three follow each other, as one that is meant has a backslash before it.
func literal(value any) (string, error) {
	text, err := json.Marshal(value, jsontext.Multiline(true), jsontext.WithIndent(" "))
	return quote.JSON(string(text)), err
}

// runCheck is the command that runs the program.
func runCheck(plan *devicemap.Plan, file string) string {
	file = quote.Path(file)
	if plan.Workload.Strategy.Traits().Sequential {
		return "python3 " + file
	}
	usage := fmt.Sprintf("torchrun --nproc-per-node %d %s", len(plan.Devices), file)
	if plan.Workload.Strategy == costmodel.DDP { // its reducer needs a group that answers
		return usage
	}
	return usage + ", or one rank of them on one GPU: python3 " + file + " --rank 0"
}

// aboutCheck describes the program: no word of a plan is in it, so that it is safe
// between quotation marks.
const aboutCheck = `"""Does PyTorch hold on every GPU what devmap predicted?

Builds the plan's model with random weights, runs some steps, and prints the peaks beside those of the plan.
Exit status 0: within the bound; 4: outside; 1: it could not run.

Run: %s
"""

`

// job is what the program receives of a plan.
type job struct {
	Model  string `json:"model"`
	Params int64  `json:"params"` // tied ones once
	What   string `json:"what"`
	// Bound is how far a measured peak may be from the predicted range, as a share:
	// the bound that README states and make accuracy checks. A family that no one
	// has read brings a range of its own.
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
		Model: plan.Model.Name, Params: plan.Model.Params, What: workOf(plan), Bound: 0.005, Mode: workload.Mode, Strategy: workload.Strategy,
		Batch: workload.Batch, MicroBatches: max(1, workload.MicroBatches), Seq: workload.Seq, NewTokens: workload.NewTokens,
		Precision: workload.Precision, Optimizer: workload.Optimizer, Recompute: workload.Recompute,
		Attention: cmp.Or(attention(workload), "sdpa"), LossOnly: workload.LossOnly || !workload.Strategy.Traits().Sequential,
		GradientViews: workload.GradientViews, LoRARank: workload.LoRARank, LoRATargets: workload.LoRATargets, LoRAPrecision: workload.LoRAPrecision,
		ShardDegree: workload.ShardDegree, Schedule: string(workload.Schedule), Imbalance: plan.Imbalance, Notes: plan.Warnings,
	}
	switch traits := workload.Strategy.Traits(); {
	case traits.Staged:
		for i := range plan.Stages { // a stage's device is its rank: a process a GPU
			made.Stages = append(made.Stages, [2]any{plan.Stages[i].Device, plan.Stages[i].Units})
		}
	case traits.Sequential:
		made.Map, made.Bound = plan.DeviceMap, 0.01
	}
	for i := range plan.Devices {
		predicted := &plan.Devices[i].Predicted
		device := peak{Allocated: predicted.PeakAllocatedBytes, Range: [2]int64{predicted.PeakAllocatedBytes, predicted.PeakAllocatedBytes}, Slack: predicted.SlackBytes, Used: predicted.DeviceUsedBytes}
		if len(predicted.PeakRangeBytes) == 2 {
			device.Range = [2]int64(predicted.PeakRangeBytes)
		}
		made.Devices = append(made.Devices, device)
	}
	return made
}

// workOf is the plan's work in a few words.
func workOf(plan *devicemap.Plan) string {
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

// elsewhere are model types without code in Transformers (5.17): their
// repositories bring it.
var elsewhere = []string{"baichuan", "internlm2", "internlm3", "internvl_chat", "minicpm", "nemotron-nas", "xverse"}

// checkedStages are the families that a pipeline's stages are made of: whose blocks take
// one rotation and no mask, between model.embed_tokens and lm_head.
var checkedStages = []string{"llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2"}

// modelConfig are the fields of config.json that say which code of Transformers a
// model is.
type modelConfig struct {
	ModelType     string             `json:"model_type"`
	Architectures []string           `json:"architectures"`
	Quantization  stdjson.RawMessage `json:"quantization_config"`
}

// reason says why the program would not run what the plan counts, if it holds.
type reason struct {
	fits bool
	text string
}

// uncheckable is the first reason that holds.
func uncheckable(plan *devicemap.Plan, config []byte) error {
	var model modelConfig
	if err := stdjson.Unmarshal(config, &model); err != nil {
		return fmt.Errorf("the config of %q: %w", plan.Model.Name, err)
	}
	for _, reason := range slices.Concat(unbuildable(&model), unfit(&plan.Workload), unspread(plan, model.ModelType)) {
		if reason.fits {
			return refused("the plan for %q: %s", plan.Model.Name, reason.text)
		}
	}
	return nil
}

// unbuildable says why Transformers does not build the model from its config.
func unbuildable(model *modelConfig) []reason {
	class := strings.Join(model.Architectures[:min(1, len(model.Architectures))], "")
	causal := class == "" || strings.HasSuffix(class, "ForCausalLM") || strings.HasSuffix(class, "LMHeadModel")
	return []reason{
		{model.ModelType == "", "its config.json names no model_type: only Transformers' models are built"},
		{slices.Contains(elsewhere, model.ModelType), fmt.Sprintf("Transformers has no model_type %q: its repository brings the code", model.ModelType)},
		{!causal, fmt.Sprintf("%s is no causal language model: only token ids are made up", class)},
		{len(model.Quantization) > 0 && string(model.Quantization) != "null", "its weights are stored quantised, which no random values are: plan the unquantised model"},
	}
}

// unfit says what of the workload the program does not do.
func unfit(workload *costmodel.Workload) []reason {
	return []reason{
		{workload.Runtime == costmodel.Devmap, "its engine is devmap's own, which devmap run measures: torch-check has torch and accelerate"},
		{workload.Runtime != "accelerate" && workload.Runtime != "torch", fmt.Sprintf("its engine is %s: torch-check has torch and accelerate", workload.Runtime)},
		{driven(workload), fmt.Sprintf("preset %s drives its engine in another way than torch-check, a loop written by hand: plan with --preset accelerate-loop", workload.Preset)},
		{workload.HostShards, "its parts are in host memory: torch-check has no CPU offload"},
		{ownLayers(workload), fmt.Sprintf("preset %s has layers or adapters of its own: torch-check runs those of Transformers and PEFT", workload.Preset)},
		{workload.Images > 0, "it has images: only token ids are made up"},
		{workload.Quantize != "", fmt.Sprintf("quantize %s needs bitsandbytes' own loading of a checkpoint", workload.Quantize)},
		{workload.Recompute == "selective", "which operations are recomputed is the trainer's own choice: recompute none or full"},
		{workload.Loss != "" && workload.Loss != "eager", fmt.Sprintf("loss %s is the trainer's own: Transformers' is eager", workload.Loss)},
		{workload.EMA, "the moving average is the trainer's own"},
		{workload.OptimizerInBackward || workload.Liger || workload.Compile, "optimizers in backward, Liger and torch.compile are the trainer's own: leave them out of the plan"},
		{slices.Contains([]string{"adafactor", "muon", "paged-adamw-8bit", "paged-adamw-32bit", "adamw-torch-8bit", "adamw-torch-4bit"}, workload.Optimizer), fmt.Sprintf("optimizer %s is the trainer's own: torch-check has adamw, adamw-foreach, adamw-8bit, sgd and sgd-momentum", workload.Optimizer)},
	}
}

// ownLayers reports a program under DDP that runs Megatron-Core's layers, or its own
// functions for adapters.
func ownLayers(workload *costmodel.Workload) bool {
	return workload.Preset == "ms-swift-megatron" || workload.Preset == "axolotl" && workload.LoRARank > 0
}

// driven reports a training program whose way of driving the engine shows in the
// peaks: groups and types under FSDP2, casts of adapters, no DDP on one GPU.
func driven(workload *costmodel.Workload) bool {
	adapters := workload.LoRARank > 0 && (workload.Precision == costmodel.BF16Mixed || workload.Precision == costmodel.FP16Mixed)
	return workload.Preset != "" && workload.Mode == costmodel.Train && (workload.Strategy.Traits().ByBlock || adapters || workload.World == 1)
}

// unspread says which ways to spread the model the program does not have.
func unspread(plan *devicemap.Plan, family string) []reason {
	workload, traits := &plan.Workload, plan.Workload.Strategy.Traits()
	offloaded := ""
	for _, entry := range plan.DeviceMap {
		if entry.Device < 0 && offloaded == "" {
			offloaded = fmt.Sprintf("%s is on %v", entry.Key, entry.Device)
		}
	}
	return []reason{
		{traits.Replicated && (workload.Mode != costmodel.Train || workload.MicroBatches > 1), fmt.Sprintf("under %s torch-check trains, without accumulating gradients", workload.Strategy)},
		{workload.DP != 0 || workload.TP != 0 || workload.Recompute == "auto", "stages of several GPUs, and of forms of their own, are not in torch-check: plan with --dp 1 --tp 1 and one --recompute"},
		{traits.Staged && (workload.Mode != costmodel.Train || workload.LoRARank > 0), "of a pipeline torch-check trains all weights"},
		{traits.Sequential && workload.ListsRecomputed(), "a device map recomputes all blocks or none: plan with --recompute full or none"},
		{len(plan.Devices) == 0, "it predicts nothing, its devices are an empty list: devmap plan writes one that does"},
		{offloaded != "", offloaded + ": torch-check keeps all on GPUs"},
		{traits.Staged && !slices.Contains(checkedStages, family), fmt.Sprintf("stages of a %s are not made: those of %s are", family, strings.Join(checkedStages, ", "))},
	}
}
