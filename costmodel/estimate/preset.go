package estimate

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// resolvePreset replaces "auto" by the preset of the strategy and the engine. That sets the code
// path, not the batch. No trainer keeps the logits; only a device map's caller could.
func resolvePreset(workload *costmodel.Workload) {
	if workload.Preset != trainer.Auto {
		return
	}
	workload.Preset = trainer.Usual
	for _, field := range costmodel.Fields() {
		if field.Name == "preset" && (!field.Implied(workload) || checkNoStages(workload, trainer.Of(trainer.Usual)) != nil) {
			workload.Preset = "" // settings of a pipeline are refused for the strategy's sake
		}
	}
	workload.LossOnly = workload.LossOnly || workload.Preset != "" && workload.Strategy.Traits().Sequential
}

// checkPreset refuses what the preset's program does not run, or devmap does not count.
func checkPreset(workload *costmodel.Workload) error {
	preset := trainer.Of(workload.Preset)
	name, loop := costmodel.Set("preset", preset.Name), costmodel.Set("preset", trainer.Loop)
	missing, runtime := missingOf(preset, workload), preset.Runtime
	if runtimes := workload.Strategy.Traits().Runtimes; len(runtimes) > 0 && !slices.Contains(runtimes, runtime) {
		runtime = runtimes[0]
	}
	switch {
	case workload.Preset == trainer.Auto || workload.Strategy.Traits().Open: // each row has its own
		return nil
	case preset.Pipeline != "":
		return refuse("preset", preset.Name, "the program trains a %s, a folder with a model_index.json, and this model is none: use %v", preset.Pipeline, costmodel.Set("preset", preset.Nearest))
	case missing != "":
		return uncounted(preset, missing)
	case len(preset.Strategies) == 0:
		return nil
	case workload.Mode != costmodel.Train:
		return refuse("mode", workload.Mode, "%s contradicts %v, which trains: use %v or leave out one of them", workload.Mode, name, costmodel.Set("mode", costmodel.Train))
	case !slices.Contains(preset.Strategies, string(workload.Strategy)):
		return refuse("strategy", workload.Strategy, "%v does not run %s (it runs %s): use %v, or %v for a loop of your own", name, workload.Strategy, strings.Join(preset.Strategies, ", "), nearestStrategy(preset, workload.Strategy), loop)
	case workload.Runtime != "" && workload.Runtime != runtime:
		return refuse("runtime", workload.Runtime, "%v does not run on %s: use %v", name, workload.Runtime, costmodel.Set("runtime", runtime))
	case workload.Recompute == value.RecomputeSelective && preset.Path.PlainAlone: // Accelerate's programs call gradient_checkpointing_enable
		return refuse("recompute", workload.Recompute, "%v recomputes whole blocks: use %v, or %v for a loop of your own", name, costmodel.Set("recompute", costmodel.RecomputeFull), loop)
	}
	if err := checkOptimizer(workload, preset); err != nil {
		return err
	}
	return checkNoStages(workload, preset)
}

// uncounted refuses what of a program is not counted, and names what is.
func uncounted(preset *trainer.Preset, missing string) error {
	nearest := costmodel.Set("preset", preset.Nearest)
	if missing == preset.MissingLoRA && len(preset.LoRAUnder) > 0 {
		return refuse("preset", preset.Name, "devmap does not count %s yet: plan with %v, or with %v and the flags of your run", missing, costmodel.Set("strategy", preset.LoRAUnder[0]), nearest)
	}
	return refuse("preset", preset.Name, "devmap does not count %s yet: plan with %v and the flags of your run", missing, nearest)
}

// checkOptimizer refuses an optimizer that a program does not have.
func checkOptimizer(workload *costmodel.Workload, preset *trainer.Preset) error {
	asked, known := workload.Optimizer, preset.Optimizers
	if asked == "" || len(known) == 0 || slices.Contains(known, asked) {
		return nil
	}
	return refuse("optimizer", asked, "%v has no %s (it has %s): use %v", costmodel.Set("preset", preset.Name), asked, strings.Join(known, ", "), costmodel.Set("optimizer", known[0]))
}

// missingOf names the uncounted parts of a program; empty: none.
func missingOf(preset *trainer.Preset, workload *costmodel.Workload) string {
	if preset.Missing == "" && workload.LoRARank > 0 && !slices.Contains(preset.LoRAUnder, string(workload.Strategy)) {
		return preset.MissingLoRA
	}
	return preset.Missing
}

// checkNoStages refuses the settings of a pipeline under a preset that runs none.
func checkNoStages(workload *costmodel.Workload, preset *trainer.Preset) error {
	pipeline := costmodel.Set("strategy", costmodel.Pipeline)
	if slices.Contains(preset.Strategies, pipeline.Value) {
		return nil
	}
	for _, field := range costmodel.Fields() {
		if text := field.Text(workload); slices.Contains([]string{"dp", "tp", "schedule"}, field.Name) && text != "" && text != string(costmodel.OneFOneB) {
			return refuse(field.Name, text, "%v runs no pipeline: leave %v out, or plan with %v and %v",
				costmodel.Set("preset", preset.Name), costmodel.Setting{Field: field.Name}, pipeline, costmodel.Set("preset", trainer.Loop))
		}
	}
	return nil
}

// nearestStrategy is the one of a preset that does most of what another does.
func nearestStrategy(preset *trainer.Preset, asked costmodel.Strategy) costmodel.Setting {
	traits := asked.Traits()
	for _, name := range preset.Strategies {
		if like := costmodel.Strategy(name).Traits(); traits.ZeroStage > 0 && like.ZeroStage == traits.ZeroStage {
			return costmodel.Set("strategy", name)
		}
	}
	return costmodel.Set("strategy", preset.Strategies[0])
}
