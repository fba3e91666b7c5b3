package emit

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// vLLM takes a plan as flags (engine/arg_utils.py) and the layers of each stage in a variable
// (distributed/utils.py, get_pp_indices), in a script that starts its server.
var _ = register(&Target{
	Name: "vllm", Aliases: []string{"vllm-serve"}, File: "vllm.sh", Run: "sh vllm.sh",
	Example: "llama-3.1-8b --gpus 2 --runtime vllm", Golden: []string{"vllm"},
	needs: []need{servedBy(costmodel.VLLM)},
	Write: func(to io.Writer, input *Input) error {
		workload := &input.Plan.Workload
		flags := []string{
			"--tensor-parallel-size", workload.TP.String(), "--pipeline-parallel-size", workload.PP.String(), "--data-parallel-size", workload.DP.String(),
			"--max-model-len", number(workload.Context), "--max-num-seqs", number(workload.Sequences), "--max-num-batched-tokens", number(workload.BatchedTokens),
			"--gpu-memory-utilization", strconv.FormatFloat(workload.MemFraction, 'f', -1, 64), "--kv-cache-dtype", quote.Shell(cmp.Or(workload.KVType, "auto")),
		}
		if workload.EP.Count() > 1 {
			flags = append(flags, "--enable-expert-parallel")
		}
		if workload.Eager {
			flags = append(flags, "--enforce-eager")
		}
		return writeServer(to, input, "VLLM_PP_LAYER_PARTITION", "vllm serve "+modelOf(input), flags)
	},
	Usage: func(_ *Input, file string) (usage, note string) { return "sh " + quote.Path(file), "" },
})

// SGLang takes a plan in the same way (srt/server_args.py; distributed/utils.py, get_pp_indices).
var _ = register(&Target{
	Name: "sglang", Aliases: []string{"sgl"}, File: "sglang.sh", Run: "sh sglang.sh",
	Example: "llama-3.1-8b --gpus 2 --runtime sglang", Golden: []string{"sglang"},
	needs: []need{servedBy(costmodel.SGLang)},
	Write: func(to io.Writer, input *Input) error {
		workload := &input.Plan.Workload
		flags := []string{
			"--tp", workload.TP.String(), "--pp-size", workload.PP.String(), "--dp", workload.DP.String(), "--context-length", number(workload.Context),
			"--chunked-prefill-size", number(workload.BatchedTokens), "--mem-fraction-static", strconv.FormatFloat(workload.MemFraction, 'f', -1, 64),
		}
		if workload.Sequences > 0 {
			flags = append(flags, "--max-running-requests", number(workload.Sequences))
		}
		if workload.KVType != "auto" && workload.KVType != "" {
			flags = append(flags, "--kv-cache-dtype", quote.Shell(sglangType(workload.KVType)))
		}
		if workload.EP.Count() > 1 {
			flags = append(flags, "--ep", workload.EP.String())
		}
		if workload.Eager {
			flags = append(flags, "--disable-cuda-graph")
		}
		return writeServer(to, input, "SGLANG_PP_LAYER_PARTITION", "python -m sglang.launch_server --model-path "+modelOf(input), flags)
	},
	Usage: func(_ *Input, file string) (usage, note string) { return "sh " + quote.Path(file), "" },
})

// sglangType is SGLang's name of a type of the cache.
func sglangType(kind string) string {
	if kind == "fp8" {
		return "fp8_e4m3"
	}
	return kind
}

func number(value int64) string { return strconv.FormatInt(value, 10) }

// writeServer writes a script that starts an engine with ranks. The variable has the layers of each
// stage.
func writeServer(to io.Writer, input *Input, variable, command string, flags []string) error {
	plan := input.Plan
	counts, err := layersOf(plan)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("#!/bin/sh\n# %s for the plan of %s\n", plan.Workload.Runtime, quote.Comment(plan.Model.Name))
	if strings.Contains(command, scriptFolder) {
		text += setScriptFolder
	}
	if len(counts) > 1 {
		words := make([]string, len(counts))
		for i, count := range counts {
			words[i] = strconv.Itoa(count)
		}
		text += "export " + variable + "=" + strings.Join(words, ",") + "\n"
	}
	_, err = fmt.Fprintf(to, "%sexec %s %s \"$@\"\n", text, command, strings.Join(flags, " "))
	return err
}

// modelOf is the model of a plan for the engine. A built-in name is no checkpoint: the user sets
// MODEL.
func modelOf(input *Input) string {
	if source := input.Plan.Model.Source; strings.ContainsAny(source, "/\\") {
		if _, err := os.Stat(source); err == nil {
			return input.fromHere(source)
		}
		return quote.Path(source) // a name of the Hugging Face Hub
	}
	return `"${MODEL:?set MODEL to the checkpoint}"`
}

// layersOf counts the layers of each stage. The error is for stages that the engine cannot have.
func layersOf(plan *devicemap.Plan) ([]int, error) {
	layers := plan.UnitKinds["decoder-layer"]
	if int64(len(plan.Stages)) != plan.Workload.PP.Count() || len(layers) == 0 {
		return nil, refused("the plan for %q has %d stages and %d layers, and its pipeline has %v: plan again", plan.Model.Name, len(plan.Stages), len(layers), plan.Workload.PP)
	}
	counts, at := make([]int, len(plan.Stages)), 0
	for i := range plan.Stages {
		for _, unit := range plan.Stages[i].Units {
			if !slices.Contains(layers, unit) {
				continue
			}
			if at == len(layers) || unit != layers[at] {
				return nil, refused("the plan for %q has %s out of order, or twice: the engine's stages have each layer once, in order", plan.Model.Name, quote.Comment(unit))
			}
			counts[i]++
			at++
		}
	}
	if at < len(layers) || slices.Contains(counts, 0) {
		return nil, refused("the plan for %q has stages of %d layers, and the model has %d", plan.Model.Name, counts, len(layers))
	}
	return counts, nil
}
