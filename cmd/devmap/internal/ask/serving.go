package ask

import (
	"cmp"
	"math"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// Serves reports that the flags ask for an engine that serves, or that gguf, MODEL's form, does and
// the user named no other engine.
func Serves(request *Request, gguf bool) bool {
	if request.work.Runtime == costmodel.LlamaCPP || request.work.Mode == costmodel.Serve {
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
	case sizes.Context > tokens/sizes.Sequences:
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
	return out.Usagef("%s: llama.cpp alone computes with GGUF files, by devmap plan\ngive another engine the model's config.json, or --mode %s for the weights alone", model, costmodel.Load)
}

// IdleServing reports flags of an engine that serves, if none does.
func IdleServing(request *Request) error {
	for _, f := range servingFlags {
		if given(request.cmd.Flags(), f.name) {
			return out.Usagef("--%s: it is for an engine that serves: give a GGUF file, or --runtime %s with one", f.name, costmodel.LlamaCPP)
		}
	}
	return nil
}

// ServingOf returns the workload and the GPUs of an engine that serves. A flag without a meaning
// there is an error.
func ServingOf(request *Request) (costmodel.Workload, *costmodel.Topology, error) {
	workload := costmodel.Workload{Mode: costmodel.Serve, Runtime: costmodel.LlamaCPP, Strategy: costmodel.DeviceMap, Serving: request.serving, Batch: 1, MicroBatches: 1, Precision: costmodel.FP16True, StoredTypes: true}
	switch idle := givenFlags(request, func(ours *flag) bool { return ours == nil || !ours.serves }); {
	case len(idle) > 0:
		return workload, nil, out.Usagef("%s: not for an engine that serves (--runtime %s); leave it out", strings.Join(idle, ", "), costmodel.LlamaCPP)
	case request.Given("mode") && request.work.Mode != costmodel.Serve:
		return workload, nil, out.Usagef("--mode %s --runtime %s: that engine serves: leave --mode out", request.work.Mode, costmodel.LlamaCPP)
	case request.Given("runtime") && request.work.Runtime != costmodel.LlamaCPP:
		return workload, nil, out.Usagef("--mode %s --runtime %s: it is for --runtime %s", costmodel.Serve, request.work.Runtime, costmodel.LlamaCPP)
	}
	set := request.cmd.Flags()
	if err := cmp.Or(checkValues(set), checkZeros(set, commands[request.cmd.Name()])); err != nil {
		return workload, nil, err
	}
	if _, err := request.Workload(); err != nil { // its counts
		return workload, nil, err
	}
	if err := servingLimits(&workload.Serving); err != nil {
		return workload, nil, err
	}
	topology, err := request.devices(costmodel.Infer, 0)
	return workload, topology, err
}
