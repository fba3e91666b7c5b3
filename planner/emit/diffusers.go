package emit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// diffusers reads nothing: a program calls its pipelines.
var _ = register(&Target{
	Name: "diffusers", File: "generate.py",
	Example: "flux --gpus 1", Golden: []string{"diffusion"},
	needs: []need{diffusion}, Write: diffusersCalls, Usage: diffusersUsage,
})

// generation is what a plan of a diffusion pipeline was asked for.
type generation struct {
	Class string `json:"class"`
	phases.Workload
}

// generationOf reads it out of a plan.
func generationOf(plan *devicemap.Plan) (generation, error) {
	var asked generation
	if err := json.Unmarshal(plan.Pipeline, &asked); err != nil {
		return asked, fmt.Errorf("parsing the plan's \"pipeline\": %w", err)
	}
	if !quote.IsPythonName(asked.Class) {
		return asked, fmt.Errorf("the plan's pipeline.class %q is no class of Python", asked.Class)
	}
	if _, known := offloadCalls[asked.Offload]; !known {
		return asked, fmt.Errorf("the plan's pipeline.offload %q is unknown (known: model, sequential, group)", asked.Offload)
	}
	if len(asked.Layers) > 0 && int64(len(asked.Layers)) != asked.PipeFusion || slices.ContainsFunc(asked.Layers, func(count int64) bool { return count < 1 }) {
		return asked, fmt.Errorf("the plan's pipeline.attn_layer_num_for_pp %d is no number of blocks for each of %d stages", asked.Layers, asked.PipeFusion)
	}
	return asked, nil
}

// offloadCalls place a pipeline, by its offload.
var offloadCalls = map[string]string{
	"":           "pipe.to(\"cuda\")\n",
	"model":      "pipe.enable_model_cpu_offload()\n",
	"sequential": "pipe.enable_sequential_cpu_offload()\n",
	"group":      "pipe.enable_group_offload(onload_device=torch.device(\"cuda\"), offload_device=torch.device(\"cpu\"),\n                          offload_type=\"block_level\", num_blocks_per_group=1)\n",
}

// diffusersCalls is a program in Python: the calls that make a pipeline run as
// it was planned.
func diffusersCalls(to io.Writer, input *Input) error {
	plan := input.Plan
	asked, err := generationOf(plan)
	if err != nil {
		return err
	}
	if plan.Workload.Mode == costmodel.Train {
		return &refusal{trainsItself(plan, &asked)}
	}
	if len(plan.Devices) > 1 {
		return &refusal{costmodel.Messagef("the plan for %q is of %d GPUs, which diffusers' own pipelines do not share: emit --for xdit writes it", plan.Model.Name, len(plan.Devices))}
	}
	var text strings.Builder
	names, loaded, given := asked.Class, "", ""
	if asked.VAEPrecision == "fp32" { // Wan's alone
		names, given = "AutoencoderKLWan, "+names, "vae=vae, "
		loaded = fmt.Sprintf("vae = AutoencoderKLWan.from_pretrained(%s, subfolder=\"vae\", torch_dtype=torch.float32)\n", quote.Python(plan.Model.Source))
	}
	fmt.Fprintf(&text, "import torch\nfrom diffusers import %s\n\n%spipe = %s.from_pretrained(%s, %storch_dtype=torch.bfloat16)\n", names, loaded, asked.Class, quote.Python(plan.Model.Source), given)
	text.WriteString(offloadCalls[asked.Offload])
	if asked.VAETiling {
		text.WriteString("pipe.vae.enable_tiling()\n")
	}
	if asked.VAESlicing {
		text.WriteString("pipe.vae.enable_slicing()\n")
	}
	sizes := fmt.Sprintf("height=%d, width=%d, ", asked.Height, asked.Width)
	if strings.Contains(asked.Class, "Img2Img") { // the picture has them
		sizes = ""
	}
	fmt.Fprintf(&text, "arguments = dict(%snum_inference_steps=%d", sizes, asked.Steps)
	if asked.Frames > 1 {
		fmt.Fprintf(&text, ", num_frames=%d", asked.Frames)
	}
	if asked.Batch > 1 {
		perPrompt := "num_images_per_prompt"
		if asked.Frames > 1 {
			perPrompt = "num_videos_per_prompt"
		}
		fmt.Fprintf(&text, ", %s=%d", perPrompt, asked.Batch)
	}
	text.WriteString(")\n")
	_, err = io.WriteString(to, text.String())
	return err
}

func diffusersUsage(input *Input, file string) (usage, note string) {
	given := ""
	if asked, err := generationOf(input.Plan); err == nil {
		given = pictures(asked.Class)
	}
	if module, found := strings.CutSuffix(file, ".py"); found && quote.IsPythonName(module) {
		return fmt.Sprintf("from %s import pipe, arguments; pipe(\"a prompt\", %s**arguments)", module, given), ""
	}
	return fmt.Sprintf("import runpy; made = runpy.run_path(%s); made[\"pipe\"](\"a prompt\", %s**made[\"arguments\"])", quote.Python(file), given), ""
}

// pictures are the arguments of a pipeline that begins with some.
func pictures(class string) string {
	for _, kind := range []struct{ word, arguments string }{
		{"Fill", "image=image, mask_image=mask, "},
		{"Inpaint", "image=image, mask_image=mask, "},
		{"Control", "control_image=image, "},
		{"ImageToVideo", "image=image, "},
		{"Img2Img", "image=image, "},
		{"Kontext", "image=image, "},
	} {
		if strings.Contains(class, kind.word) {
			return kind.arguments
		}
	}
	return ""
}

// mixedPrecisions are the values of the program's --mixed_precision.
var mixedPrecisions = map[costmodel.Precision]string{costmodel.FP32True: "no", costmodel.BF16Mixed: "bf16", costmodel.FP16Mixed: "fp16"}

// trainsItself names the command that runs a plan of training: its program's own
// (train_dreambooth_lora_flux.py: parse_args). Words in capitals are for its user to
// replace: the program refuses to start without them.
func trainsItself(plan *devicemap.Plan, asked *generation) costmodel.Message {
	work := &plan.Workload
	words := fmt.Sprintf("accelerate launch --num_processes %d train_dreambooth_lora_flux.py --pretrained_model_name_or_path %s --instance_data_dir DATA --instance_prompt PROMPT --output_dir OUTPUT --resolution %d --train_batch_size %d --rank %d",
		len(plan.Devices), quote.Path(cmp.Or(plan.Model.Source, "MODEL")), asked.Height, asked.Batch/max(1, work.MicroBatches), work.LoRARank)
	for _, flag := range []struct {
		text string
		on   bool
	}{
		{"--lora_layers " + quote.Shell(strings.Join(work.LoRATargets, ",")), len(work.LoRATargets) > 0},
		{fmt.Sprintf("--gradient_accumulation_steps %d", work.MicroBatches), work.MicroBatches > 1},
		{"--mixed_precision " + mixedPrecisions[work.Precision], mixedPrecisions[work.Precision] != ""},
		{"--gradient_checkpointing", work.Recompute == costmodel.RecomputeFull},
		{"--cache_latents", asked.CacheLatents},
	} {
		if flag.on {
			words += " " + flag.text
		}
	}
	return costmodel.Messagef("the plan for %q trains, and diffusers' script does it: run %s", plan.Model.Name, words)
}
