package emit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// generation is what a plan of a diffusion pipeline was asked for.
type generation struct {
	Class            string `json:"class"`
	Height           int64  `json:"height"`
	Width            int64  `json:"width"`
	Frames           int64  `json:"frames"`
	Steps            int64  `json:"steps"`
	Batch            int64  `json:"batch"`
	Offload          string `json:"offload"`
	VAETiling        bool   `json:"vae_tiling"`
	VAESlicing       bool   `json:"vae_slicing"`
	CFGDegree        int64  `json:"cfg_degree"`
	Ulysses          int64  `json:"ulysses"`
	Ring             int64  `json:"ring"`
	PipeFusion       int64  `json:"pipefusion"`
	FullyShardDegree int64  `json:"fully_shard_degree"`
	// Layers are the blocks of each stage of PipeFusion.
	Layers []int64 `json:"attn_layer_num_for_pp"`
}

// generationOf reads it out of a plan.
func generationOf(plan *devicemap.Plan) (generation, error) {
	var asked generation
	if len(plan.Pipeline) == 0 {
		return asked, fmt.Errorf("the plan for %q is of no diffusion pipeline: devmap plan takes a folder with a model_index.json", plan.Model.Name)
	}
	if err := json.Unmarshal(plan.Pipeline, &asked); err != nil {
		return asked, fmt.Errorf("parsing the plan's \"pipeline\": %w", err)
	}
	if !identifier(asked.Class) {
		return asked, fmt.Errorf("the plan's pipeline.class %q is no class of Python", asked.Class)
	}
	if len(asked.Layers) > 0 && int64(len(asked.Layers)) != asked.PipeFusion || slices.ContainsFunc(asked.Layers, func(count int64) bool { return count < 1 }) {
		return asked, fmt.Errorf("the plan's pipeline.attn_layer_num_for_pp %d is no number of blocks for each of %d stages", asked.Layers, asked.PipeFusion)
	}
	return asked, nil
}

// identifier reports a name that Python takes.
func identifier(name string) bool {
	for i, char := range name {
		letter := char == '_' || char >= 'a' && char <= 'z' || char >= 'A' && char <= 'Z'
		if !letter && (i == 0 || char < '0' || char > '9') {
			return false
		}
	}
	return name != ""
}

// diffusersCalls is a program in Python: the calls that make a pipeline run as
// it was planned.
func diffusersCalls(to io.Writer, plan *devicemap.Plan) error {
	asked, err := generationOf(plan)
	if err != nil {
		return err
	}
	if len(plan.Devices) > 1 {
		return &refusal{costmodel.Messagef("the plan for %q is of %d GPUs, which diffusers' own pipelines do not share: emit --for xdit writes it", plan.Model.Name, len(plan.Devices))}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "import torch\nfrom diffusers import %s\n\npipe = %s.from_pretrained(%q, torch_dtype=torch.bfloat16)\n", asked.Class, asked.Class, plan.Model.Source)
	text.WriteString(map[string]string{
		"":           "pipe.to(\"cuda\")\n",
		"model":      "pipe.enable_model_cpu_offload()\n",
		"sequential": "pipe.enable_sequential_cpu_offload()\n",
		"group":      "pipe.enable_group_offload(onload_device=torch.device(\"cuda\"), offload_device=torch.device(\"cpu\"),\n                          offload_type=\"block_level\", num_blocks_per_group=1)\n",
	}[asked.Offload])
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

func diffusersUsage(plan *devicemap.Plan, file string) (usage, note string) {
	given := ""
	if asked, err := generationOf(plan); err == nil {
		given = pictures(asked.Class)
	}
	return fmt.Sprintf("from %s import pipe, arguments; pipe(\"a prompt\", %s**arguments)", strings.TrimSuffix(file, ".py"), given), ""
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

// xditFlags are the arguments of xDiT's own programs, on one line.
func xditFlags(to io.Writer, plan *devicemap.Plan) error {
	asked, err := generationOf(plan)
	if err != nil {
		return err
	}
	flags := []string{fmt.Sprintf("--height %d --width %d --num_inference_steps %d", asked.Height, asked.Width, asked.Steps)}
	if asked.Frames > 1 {
		flags = append(flags, fmt.Sprintf("--num_frames %d", asked.Frames))
	}
	for _, degree := range []struct {
		flag  string
		count int64
	}{
		{"--ulysses_degree", asked.Ulysses},
		{"--ring_degree", asked.Ring},
		{"--pipefusion_parallel_degree", asked.PipeFusion},
		{"--fully_shard_degree", asked.FullyShardDegree},
	} {
		if degree.count > 1 {
			flags = append(flags, fmt.Sprintf("%s %d", degree.flag, degree.count))
		}
	}
	if asked.PipeFusion > 1 && len(asked.Layers) > 0 {
		flags = append(flags, "--attn_layer_num_for_pp "+strings.Trim(fmt.Sprint(asked.Layers), "[]"))
	}
	for flag, set := range map[string]bool{"--use_cfg_parallel": asked.CFGDegree == 2} {
		if set {
			flags = append(flags, flag)
		}
	}
	if asked.VAETiling {
		flags = append(flags, "--enable_tiling")
	}
	if asked.VAESlicing {
		flags = append(flags, "--enable_slicing")
	}
	switch asked.Offload {
	case "model":
		flags = append(flags, "--enable_model_cpu_offload")
	case "sequential":
		flags = append(flags, "--enable_sequential_cpu_offload")
	case "group":
		return &refusal{costmodel.Messagef("the plan for %q offloads groups of blocks, for which xDiT has no flag: emit --for diffusers writes the call", plan.Model.Name)}
	}
	_, err = fmt.Fprintln(to, strings.Join(flags, " "))
	return err
}

func xditUsage(plan *devicemap.Plan, file string) (usage, note string) {
	note = "xDiT has an example a pipeline: take the one of this pipeline's class"
	if asked, err := generationOf(plan); err == nil && asked.PipeFusion > 1 {
		note += "; xDiT 0.7's own command, xdit --model, has no --attn_layer_num_for_pp and cuts the blocks evenly, rounded up"
	}
	return fmt.Sprintf("torchrun --nproc_per_node=%d examples/flux_example.py --model %s --prompt \"a prompt\" $(cat %s)", len(plan.Devices), plan.Model.Source, file), note
}
