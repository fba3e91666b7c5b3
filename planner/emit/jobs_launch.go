package emit

import (
	"io"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// lightningTrainer is the section of the Trainer in a configuration of LightningCLI
// (lightning 2.6, pytorch/trainer/trainer.py).
func lightningTrainer(to io.Writer, input *Input) error {
	workload := &input.Plan.Workload
	strategy, precision := "FSDPStrategy", workload.Precision
	switch {
	case workload.Strategy == costmodel.DDP && workload.GradientViews:
		strategy = "DDPStrategy"
	case workload.Strategy == costmodel.DDP:
		strategy = "ddp"
	case workload.Preset == "lightning:model-parallel":
		strategy = "ModelParallelStrategy"
		if precision == costmodel.BF16Mixed { // MixedPrecisionPolicy in configure_model is in the place of autocast
			precision = costmodel.FP32True
		}
	}
	return form(to, "lightning.yaml", input.Plan, map[string]any{"Work": workload, "Strategy": strategy, "Precision": precision, "Accumulation": max(1, workload.MicroBatches)})
}

// accelerateConfig is what accelerate launch reads (accelerate 1.15,
// commands/config/config_args.py; utils/dataclasses.py, AORecipeKwargs).
func accelerateConfig(to io.Writer, input *Input) error {
	workload := &input.Plan.Workload
	mixed := map[costmodel.Precision]string{costmodel.BF16Mixed: "bf16", costmodel.FP16Mixed: "fp16"}[workload.Precision]
	switch {
	case workload.Float8 != "":
		mixed = "fp8"
	case mixed == "":
		mixed = `"no"` // Python reads a bare no as False, at which accelerate launch stops (utils/launch.py, prepare_multi_gpu_env)
	}
	sharded, first, groups := workload.Strategy != costmodel.DDP, strings.HasPrefix(workload.Preset, "transformers:fsdp1"), int64(0)
	if parts := workload.ShardDegree > 0 && workload.ShardDegree < workload.World; workload.Strategy == costmodel.HSDP || parts && sharded && !first {
		groups = workload.World / max(1, workload.ShardDegree)
	}
	return form(to, "accelerate.yaml", input.Plan, map[string]any{
		"Work": workload, "Mixed": mixed, "Sharded": sharded, "First": first, "Prefetches": strings.HasSuffix(workload.Preset, "-prefetch"), "Groups": groups,
	})
}
