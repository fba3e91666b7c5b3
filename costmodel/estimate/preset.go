package estimate

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
)

// checkPreset refuses what the preset's program does not run, and what of it is
// not counted.
func checkPreset(workload *costmodel.Workload) error {
	preset := trainer.Of(workload.Preset)
	name := costmodel.Set("preset", preset.Name)
	missing := preset.Missing
	if missing == "" && workload.LoRARank > 0 && !slices.Contains(preset.LoRAUnder, string(workload.Strategy)) {
		missing = preset.MissingLoRA
	}
	runtime := preset.Runtime
	if runtimes := workload.Strategy.Traits().Runtimes; runtime == "" && len(runtimes) > 0 {
		runtime = runtimes[0]
	}
	switch {
	case missing != "":
		return refuse("preset", preset.Name, "devmap does not count %s yet: plan with %v and the flags of your run", missing, costmodel.Set("preset", preset.Nearest))
	case len(preset.Strategies) == 0:
		return nil
	case workload.Mode != costmodel.Train:
		return refuse("mode", workload.Mode, "%s contradicts %v, which trains: use %v or leave out one of them", workload.Mode, name, costmodel.Set("mode", costmodel.Train))
	case !slices.Contains(preset.Strategies, string(workload.Strategy)):
		return refuse("strategy", workload.Strategy, "%v does not run %s (it runs %s): use %v", name, workload.Strategy, strings.Join(preset.Strategies, ", "), costmodel.Set("strategy", preset.Strategies[0]))
	case workload.Runtime != runtime:
		return refuse("runtime", workload.Runtime, "%v does not run on %s: use %v", name, workload.Runtime, costmodel.Set("runtime", runtime))
	}
	return nil
}
