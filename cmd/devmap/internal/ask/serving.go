package ask

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/serving"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Serves reports that the flags ask for an engine that serves, or that gguf, MODEL's form, does and
// the user named no other engine.
func Serves(request *Request, gguf bool) bool {
	if costmodel.Serves(request.work.Runtime) || request.work.Mode == costmodel.Serve {
		return true
	}
	return gguf && !request.Given("runtime", "mode", "strategy")
}

// servingLimits reports sizes that llama.cpp does not take. The sources are LLAMA_MAX_SEQ of
// llama-cparams.h, and n_ctx and n_ubatch of common.h, which are int32.
func servingLimits(sizes *costmodel.Serving) error {
	const sequences, tokens = 256, math.MaxInt32
	switch {
	case sizes.Sequences > sequences:
		return out.Usagef("--sequences %d: llama.cpp takes at most %d", sizes.Sequences, sequences)
	case sizes.Context > tokens/max(1, sizes.Sequences):
		return out.Usagef("--context %d: llama.cpp takes at most %d tokens in all sequences", sizes.Context, tokens)
	case sizes.UBatch > tokens:
		return out.Usagef("--ubatch %d: llama.cpp takes at most %d", sizes.UBatch, tokens)
	}
	return nil
}

// RefuseGGUF reports a GGUF file for an engine other than llama.cpp. Only its weights are compared.
func RefuseGGUF(request *Request, model string) error {
	if !load.IsGGUF(model) || request.work.Mode == costmodel.Load {
		return nil
	}
	return out.Usagef("%s: llama.cpp alone computes with GGUF files; give another engine the model's config.json, or --mode %s for the weights alone", model, costmodel.Load)
}

// IdleServing reports flags of an engine that serves, if none does.
func IdleServing(request *Request) error {
	for _, f := range servingFlags {
		if given(request.cmd.Flags(), f.name) {
			return out.Usagef("--%s: it is for an engine that serves: give a GGUF file, or --runtime %s or %s", f.name, costmodel.VLLM, costmodel.SGLang)
		}
	}
	return nil
}

// ServingOf returns the workload and the GPUs of an engine that serves. A flag without a meaning
// there is an error.
func ServingOf(request *Request) (costmodel.Workload, *costmodel.Topology, error) {
	workload, err := ServingWorkload(request)
	if err != nil {
		return workload, nil, err
	}
	count := 0
	if request.Given("tp", "pp", "dp") {
		count = int(request.form())
	}
	topology, err := request.devices(costmodel.Infer, count)
	return workload, topology, err
}

// ServingWorkload is the workload alone.
func ServingWorkload(request *Request) (costmodel.Workload, error) {
	runtime := costmodel.LlamaCPP
	if request.Given("runtime") {
		runtime = request.work.Runtime
	}
	workload := costmodel.Workload{Mode: costmodel.Serve, Runtime: runtime, Strategy: costmodel.DeviceMap, Serving: request.serving, Batch: 1, MicroBatches: 1, Precision: costmodel.FP16True, StoredTypes: true}
	foreign := func(ours *flag) bool {
		return ours == nil || !ours.serves || ours.engines != nil && !slices.Contains(ours.engines, runtime)
	}
	switch idle := givenFlags(request, foreign); {
	case request.Given("runtime") && !costmodel.Serves(runtime):
		return workload, out.Usagef("--mode %s --runtime %s: it is for --runtime %s, %s or %s", costmodel.Serve, runtime, costmodel.LlamaCPP, costmodel.VLLM, costmodel.SGLang)
	case len(idle) > 0:
		return workload, out.Usagef("%s: not for an engine that serves (--runtime %s); leave it out", strings.Join(idle, ", "), runtime)
	case request.Given("mode") && request.work.Mode != costmodel.Serve:
		return workload, out.Usagef("--mode %s --runtime %s: that engine serves: leave --mode out", request.work.Mode, runtime)
	}
	set := request.cmd.Flags()
	if err := cmp.Or(checkValues(set), checkZeros(set, commands[request.cmd.Name()])); err != nil {
		return workload, err
	}
	if _, err := request.Workload(); err != nil { // its counts
		return workload, err
	}
	if runtime != costmodel.LlamaCPP {
		err := ofRanks(request, &workload)
		return workload, err
	}
	return workload, ofGGUF(&workload.Serving)
}

// ofGGUF finishes the workload of llama.cpp.
func ofGGUF(sizes *costmodel.Serving) error {
	sizes.Sequences = cmp.Or(sizes.Sequences, 1)
	switch {
	case sizes.KVType == "auto":
		sizes.KVType = "f16"
	case !slices.Contains(serving.CacheTypes(), sizes.KVType):
		return out.Usagef("--kv-type %s: llama.cpp has %s", sizes.KVType, strings.Join(serving.CacheTypes(), ", "))
	}
	return servingLimits(sizes)
}

// ofRanks finishes the workload of vLLM or SGLang. Sizes of 0 follow from the GPUs.
func ofRanks(request *Request, workload *costmodel.Workload) error {
	work, sizes := &request.work, &workload.Serving
	workload.Precision, sizes.UBatch = costmodel.BF16True, 0
	workload.DP, workload.TP, workload.PP, workload.EP, workload.MemFraction = work.DP, work.TP, work.PP, work.EP, work.MemFraction
	if kinds := serve.RankCacheTypes(); !slices.Contains(kinds, sizes.KVType) {
		return out.Usagef("--kv-type %s: %s has %s", sizes.KVType, workload.Runtime, strings.Join(kinds, ", "))
	}
	if sizes.BatchedTokens > 0 && sizes.Sequences > sizes.BatchedTokens {
		return out.Usagef("--sequences %d and --max-num-batched-tokens %d: a pass has a token of each sequence at least", sizes.Sequences, sizes.BatchedTokens)
	}
	if sizes.Context > math.MaxInt32 {
		return out.Usagef("--context %d: at most %d", sizes.Context, math.MaxInt32)
	}
	return nil
}

// ServingOver returns the workload and the GPUs of a check: those of the plan, with given flags, or
// those of the flags and a map.
func ServingOver(request *Request, plan *devicemap.Plan, flat devicemap.Flat) (costmodel.Workload, *costmodel.Topology, error) {
	workload, err := ServingWorkload(request)
	if err != nil {
		return workload, nil, err
	}
	if plan == nil {
		if workload.Context == 0 {
			return workload, nil, out.Usagef("--context is needed: a map alone does not say the tokens of a sequence")
		}
	} else {
		mixed := &Request{serving: plan.Workload.Serving}
		for i := range servingFlags {
			f := &servingFlags[i]
			if given(request.cmd.Flags(), f.name) {
				reflect.ValueOf(f.at(mixed)).Elem().Set(reflect.ValueOf(f.at(request)).Elem())
			}
		}
		workload = plan.Workload
		workload.Serving = mixed.serving
		if err := ofGGUF(&workload.Serving); err != nil {
			return workload, nil, err
		}
	}
	_, topology, err := request.Setting(plan, flat)
	return workload, topology, err
}

// TensorSplit returns the parts of --tensor-split; nil if it was left out.
func TensorSplit(request *Request, devices int) ([]float32, error) {
	if len(request.tensorSplit) == 0 {
		return nil, nil
	}
	if len(request.tensorSplit) != devices {
		return nil, out.Usagef("--tensor-split %s: it has %d parts for %d GPUs", strings.Join(request.tensorSplit, ","), len(request.tensorSplit), devices)
	}
	parts, sum := make([]float32, devices), float32(0)
	for i, word := range request.tensorSplit {
		part, err := strconv.ParseFloat(strings.TrimSpace(word), 32)
		if err != nil || !(part >= 0) || math.IsInf(part, 0) {
			return nil, out.Usagef("--tensor-split: %q is no part: give a number of 0 or more for each GPU", word)
		}
		parts[i] = float32(part)
		sum += parts[i]
	}
	if !(sum > 0) || math.IsInf(float64(sum), 0) {
		return nil, out.Usagef("--tensor-split %s: the parts add up to %v", strings.Join(request.tensorSplit, ","), sum)
	}
	return parts, nil
}

// GPULayers is --gpu-layers, or all units.
func GPULayers(request *Request, units int) int {
	if request.gpuLayers == 0 {
		return units
	}
	return int(min(request.gpuLayers, int64(units)))
}

// ServingChanges returns changes that fit as text, and as flags for programs.
func ServingChanges(request *Request, topology *costmodel.Topology, changes []serve.Change) (helps []string, remedies []out.Remedy) {
	typed := make([]strategy.Change, len(changes))
	for i, change := range changes {
		typed[i] = strategy.Change{Set: change.Set, Without: change.Without}
		if change.GPUs > 0 {
			typed[i].Set, typed[i].Without = request.otherGPUs(topology, change.GPUs, "")
		}
	}
	remedies = Remedies(typed)
	for i := range typed {
		helps = append(helps, ChangeText(&typed[i])+": "+changes[i].Text+", fits")
		remedies[i].Text, remedies[i].Fits = helps[i], true
	}
	return helps, remedies
}
