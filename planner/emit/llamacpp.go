package emit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// llama.cpp takes a plan as flags (common/arg.cpp), in a script that starts its server. The script
// finds the model from its own folder, so that it starts from any.
var _ = register(&Target{
	Name: "llama.cpp", Aliases: []string{"llamacpp", "llama-server", "llama_cpp"}, File: "serve.sh", Run: "sh serve.sh",
	Example: "tiny.gguf --gpus 2", Golden: []string{"llama.cpp", "llama.cpp-draft"},
	needs: []need{servedBy(costmodel.LlamaCPP)},
	Write: func(to io.Writer, input *Input) error {
		flags, err := llamaFlags(input.Plan)
		if err != nil {
			return err
		}
		words := []string{"llama-server"}
		for _, flag := range flags {
			word := quote.Shell(flag.text)
			if flag.file {
				word = input.fromHere(flag.text)
			}
			words = append(words, word)
		}
		_, err = fmt.Fprintf(to, "#!/bin/sh\n# llama.cpp for the plan of %s\n%sexec %s \"$@\"\n", quote.Comment(input.Plan.Model.Name), setScriptFolder, strings.Join(words, " "))
		return err
	},
	Usage: func(_ *Input, file string) (usage, note string) { return "sh " + quote.Path(file), "" },
})

// servedBy demands a plan of an engine that serves.
func servedBy(runtime string) need {
	return func(plan *devicemap.Plan) error {
		if plan.Workload.Runtime == runtime && plan.Workload.Mode == costmodel.Serve {
			return nil
		}
		if plan.Workload.Mode == costmodel.Serve {
			return &refusal{costmodel.Messagef("the plan for %q is for %s: plan it with %v", plan.Model.Name, plan.Workload.Runtime, costmodel.Set("runtime", runtime))}
		}
		return &refusal{costmodel.Messagef("the plan for %q is not for serving: plan it with %v", plan.Model.Name, costmodel.Set("runtime", runtime))}
	}
}

// word is a word of llama-server's command line, or the name of a file, as the plan has it.
type word struct {
	text string
	file bool
}

// llamaFlags are the flags of a plan. A split is the units of each device. The output is one of them
// (llama-model.cpp, load_tensors).
func llamaFlags(plan *devicemap.Plan) (flags []word, err error) {
	workload := &plan.Workload
	if !slices.Contains(serving.CacheTypes(), workload.KVType) {
		return nil, refused("the plan for %q has a cache of type %q, which llama.cpp does not know (%s)", plan.Model.Name, workload.KVType, strings.Join(serving.CacheTypes(), ", "))
	}
	split, offloaded, err := unitsOf(plan)
	if err != nil {
		return nil, err
	}
	add := func(words ...string) {
		for _, text := range words {
			flags = append(flags, word{text: text})
		}
	}
	file := func(flag, name string) { flags = append(flags, word{text: flag}, word{name, true}) }
	file("-m", plan.Model.Source)
	add("-c", number(workload.Context*workload.Sequences), "-np", number(workload.Sequences), "-ub", number(workload.UBatch),
		"-ngl", number(offloaded), "-fa", "on", "-ctk", workload.KVType, "-ctv", workload.KVType, "--fit", "off")
	const batch = 2048 // -b if it is left out; -ub is at most -b (llama-context.cpp)
	if workload.UBatch > batch {
		add("-b", number(workload.UBatch))
	}
	if len(split) > 1 {
		words := make([]string, len(split))
		for i, units := range split {
			words[i] = number(units)
		}
		add("-ts", strings.Join(words, ","))
	}
	if workload.HostExperts > 0 {
		add("--n-cpu-moe", number(workload.HostExperts))
	}
	if workload.InTurn { // any -ot turns the copies off (llama-context.cpp, pipeline_parallel)
		add("-ot", `token_embd\.weight=CPU`)
	}
	if workload.MMProj != "" {
		file("--mmproj", workload.MMProj)
	}
	if workload.Draft != "" { // 3 tokens at a time, which the buffers of the model count
		file("-md", workload.Draft)
		add("--spec-type", "draft-simple", "--spec-draft-n-max", "3", "-ngld", "all", "-devd", "CUDA"+number(workload.DraftGPU), "-ctkd", workload.KVType, "-ctvd", workload.KVType)
	}
	return flags, nil
}

// unitsOf counts the blocks of each device, and the output as one more of the last. The error is for
// a map that -ts cannot express.
func unitsOf(plan *devicemap.Plan) (split []int64, offloaded int64, err error) {
	split = make([]int64, len(plan.Topology.Devices))
	last, units := devicemap.CPU, 0
	for _, entry := range plan.DeviceMap {
		if gguf.Block(entry.Key+".") < 0 && entry.Key != "output" {
			continue
		}
		if entry.Device < last {
			return nil, 0, refused("the plan for %q has %s on device %v, after device %v: llama.cpp fills its devices in order", plan.Model.Name, quote.Comment(entry.Key), entry.Device, last)
		}
		units++
		if last = entry.Device; last >= 0 {
			split[last]++
			offloaded++
		}
	}
	if offloaded == 0 {
		return nil, 0, refused("the plan for %q has no blk.N on a device: it is not of a GGUF file", plan.Model.Name)
	}
	shares := make([]float32, len(split))
	for i, count := range split {
		shares[i] = float32(count)
	}
	if _, counts := serving.Layers(units, shares, int(offloaded)); !slices.EqualFunc(counts, split, func(count int, want int64) bool { return int64(count) == want }) {
		return nil, 0, refused("the plan for %q has %d units on its devices, and llama.cpp would place %d with -ts for them", plan.Model.Name, split, counts)
	}
	return split, offloaded, nil
}
