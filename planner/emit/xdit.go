package emit

import (
	"fmt"
	"io"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// xDiT's examples read flags (xfuser/config/args.py: xFuserArgs).
var _ = register(&Target{
	Name: "xdit", File: "xdit.args",
	Example: "flux --gpus 2", Golden: []string{"pipefusion"},
	needs: []need{diffusion}, Write: xditFlags, Usage: xditUsage,
})

// xditFlags are the arguments of xDiT's own programs, on one line.
func xditFlags(to io.Writer, input *Input) error {
	asked, err := generationOf(input.Plan)
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
	if asked.CFGDegree == 2 {
		flags = append(flags, "--use_cfg_parallel")
	}
	if asked.VAETiling {
		flags = append(flags, "--enable_tiling")
	}
	if asked.VAESlicing {
		flags = append(flags, "--enable_slicing")
	}
	switch asked.Offload {
	case "model", "sequential":
		flags = append(flags, "--enable_"+asked.Offload+"_cpu_offload")
	case "group":
		return &refusal{costmodel.Messagef("the plan for %q offloads groups of blocks, for which xDiT has no flag: emit --for diffusers writes the call", input.Plan.Model.Name)}
	}
	_, err = fmt.Fprintln(to, strings.Join(flags, " "))
	return err
}

func xditUsage(input *Input, file string) (usage, note string) {
	plan := input.Plan
	note = "xDiT has an example a pipeline: take the one of this pipeline's class"
	if asked, err := generationOf(plan); err == nil && asked.PipeFusion > 1 {
		note += "; xDiT 0.7's own command, xdit --model, has no --attn_layer_num_for_pp and cuts the blocks evenly, rounded up"
	}
	return fmt.Sprintf("torchrun --nproc_per_node=%d examples/flux_example.py --model %s --prompt \"a prompt\" $(cat %s)", len(plan.Devices), quote.Path(plan.Model.Source), quote.Path(file)), note
}
