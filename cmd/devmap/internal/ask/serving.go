package ask

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
)

// servingTakes are the flags of devmap plan that an engine that serves takes.
var servingTakes = []string{"gpus", "gpu", "topology", "reserve", "runtime", "mode", "context", "sequences", "kv-type", "ubatch", "output", "json", "force", "time-limit"}

// Serves reports that the flags ask for an engine that serves, or that gguf, MODEL's form, does and
// the user named no other engine.
func Serves(request *Request, gguf bool) bool {
	if request.work.Runtime == costmodel.LlamaCPP || request.work.Mode == costmodel.Serve {
		return true
	}
	return gguf && !request.Given("runtime", "mode", "strategy")
}

// IdleServing reports flags of an engine that serves, if none does.
func IdleServing(request *Request) error {
	for _, f := range servingFlags {
		if given := request.cmd.Flags().Lookup(f.name); given != nil && given.Changed {
			return out.Usagef("--%s: it is for an engine that serves: give a GGUF file, or --runtime %s with one", f.name, costmodel.LlamaCPP)
		}
	}
	return nil
}

// ServingOf returns the workload and the GPUs of an engine that serves. A flag without a meaning
// there is an error.
func ServingOf(request *Request) (costmodel.Workload, *costmodel.Topology, error) {
	workload := costmodel.Workload{Mode: costmodel.Serve, Runtime: costmodel.LlamaCPP, Strategy: costmodel.DeviceMap, Serving: request.serving, Batch: 1, MicroBatches: 1, Precision: costmodel.FP16True, StoredTypes: true}
	var idle []string
	request.cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(globals, f.Name) && !slices.Contains(servingTakes, f.Name) {
			idle = append(idle, "--"+f.Name)
		}
	})
	switch {
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
	topology, err := request.devices(costmodel.Infer, 0)
	return workload, topology, err
}
