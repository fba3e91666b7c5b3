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

// llama.cpp takes a plan as flags (common/arg.cpp), in a script that starts its server.
var _ = register(&Target{
	Name: "llama.cpp", Aliases: []string{"llamacpp", "llama-server", "llama_cpp"}, File: "serve.sh", Run: "sh serve.sh",
	Example: "tiny.gguf --gpus 2", Golden: []string{"llama.cpp"},
	needs: []need{servedBy(costmodel.LlamaCPP)},
	Write: func(to io.Writer, input *Input) error {
		flags, err := llamaFlags(input.Plan)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(to, "#!/bin/sh\n# llama.cpp for the plan of %s\nexec llama-server %s \"$@\"\n", quote.Comment(input.Plan.Model.Name), strings.Join(flags, " "))
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
		return &refusal{costmodel.Messagef("the plan for %q is not for serving: plan it with %v", plan.Model.Name, costmodel.Set("runtime", runtime))}
	}
}

// llamaFlags are the flags of a plan. A split is the units of each device. The output is one of them
// (llama-model.cpp, load_tensors).
func llamaFlags(plan *devicemap.Plan) ([]string, error) {
	workload := &plan.Workload
	if !slices.Contains(serving.CacheTypes(), workload.KVType) {
		return nil, refused("the plan for %q has a cache of type %q, which llama.cpp does not know (%s)", plan.Model.Name, workload.KVType, strings.Join(serving.CacheTypes(), ", "))
	}
	split, offloaded, err := unitsOf(plan)
	if err != nil {
		return nil, err
	}
	flags := []string{
		"-m", quote.Path(plan.Model.Source), "-c", number(workload.Context * workload.Sequences), "-np", number(workload.Sequences), "-ub", number(workload.UBatch),
		"-ngl", number(offloaded), "-fa", "on", "-ctk", workload.KVType, "-ctv", workload.KVType, "--fit", "off",
	}
	const batch = 2048 // -b if it is left out; -ub is at most -b (llama-context.cpp)
	if workload.UBatch > batch {
		flags = append(flags, "-b", number(workload.UBatch))
	}
	if len(split) > 1 {
		words := make([]string, len(split))
		for i, units := range split {
			words[i] = number(units)
		}
		flags = append(flags, "-ts", strings.Join(words, ","))
	}
	if workload.HostExperts > 0 {
		flags = append(flags, "--n-cpu-moe", number(workload.HostExperts))
	}
	if workload.InTurn { // any -ot turns the copies off (llama-context.cpp, pipeline_parallel)
		flags = append(flags, "-ot", quote.Shell(`token_embd\.weight=CPU`))
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
