package emit

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// OpenPI's train.py takes no file: a shell script sets the environment and the
// flags.
var _ = register(&Target{
	Name: "openpi", Aliases: []string{"jax", "pi0"}, File: "openpi.sh",
	Example: "pi0-lora --gpus 2 --gpu h200-141gb --mode train --batch 16", Golden: []string{"jax"},
	needs:    []need{runtime("jax", "OpenPI", costmodel.Messagef("plan with %v", costmodel.Set("runtime", "jax")))},
	families: []string{"openpi_pi0", "openpi_pi05"},
	Write:    openPI, Usage: openPIUsage,
})

// openPI writes the script: which GPUs JAX sees; its mesh takes all of them
// (openpi training/sharding.py, make_mesh), the part of each that its pool takes,
// and the flags of train.py (training/config.py, TrainConfig).
func openPI(to io.Writer, input *Input) error {
	plan, workload := input.Plan, &input.Plan.Workload
	gpus := make([]string, len(plan.Topology.Devices))
	for i := range gpus {
		gpus[i] = strconv.Itoa(i)
	}
	lines := []string{
		"#!/bin/sh",
		"# " + quote.Comment(plan.Model.Name) + " as devmap planned it; run it in a checkout of openpi.",
		fmt.Sprintf("# GPUs of the plan: %d. A CUDA_VISIBLE_DEVICES that is already set stays, and must name as many.", len(gpus)),
		"export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-" + strings.Join(gpus, ",") + "}",
		"export XLA_PYTHON_CLIENT_MEM_FRACTION=" + strconv.FormatFloat(workload.MemFraction, 'g', -1, 64),
	}
	if workload.Mode == costmodel.Train {
		// The script's arguments name the config; the plan's flags follow. The batch
		// is that of all GPUs (TrainConfig.batch_size).
		flags := fmt.Sprintf("--fsdp-devices %d --batch-size %d", workload.ShardDegree, workload.Batch*max(1, workload.World))
		if !workload.EMA {
			flags += " --ema-decay None"
		}
		lines = append(lines, `exec uv run scripts/train.py "$@" `+flags)
	} else {
		lines = append(lines, `exec uv run scripts/serve_policy.py "$@"`)
	}
	_, err := fmt.Fprintln(to, strings.Join(lines, "\n"))
	return err
}

// openPIUsage is how the script is run: the config says model, weights, data and what
// is frozen.
func openPIUsage(input *Input, file string) (usage, note string) {
	plan := input.Plan
	if plan.Workload.Mode != costmodel.Train {
		return "sh " + quote.Path(file) + " policy:checkpoint --policy.config CONFIG --policy.dir CHECKPOINT", ""
	}
	return "sh " + quote.Path(file) + " CONFIG --exp-name NAME", fmt.Sprintf("CONFIG says which weights are frozen and how long prompts are: take one whose model is %s, prompts of %d tokens", quote.Comment(plan.Model.Name), plan.Workload.Seq)
}
