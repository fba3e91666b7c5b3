package estimate

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// defaultStages is the number of virtual stages if stages are interleaved.
const defaultStages = 2

// resolveStrategy fills in what follows from the strategy. Under torch's engines callers keep only
// the loss, as in their examples: loss = model(…).loss.
func resolveStrategy(workload *costmodel.Workload) {
	if equalStages(workload) {
		workload.Strategy = cmp.Or(workload.Strategy, costmodel.Pipeline)
	}
	workload.Strategy = cmp.Or(workload.Strategy, costmodel.DeviceMap)
	traits := workload.Strategy.Traits()
	if len(traits.Runtimes) > 0 {
		workload.Runtime = cmp.Or(workload.Runtime, traits.Runtimes[0])
	}
	if !traits.Staged && workload.Schedule == costmodel.OneFOneB {
		workload.Schedule = ""
	}
	if !workload.Schedule.Chunked() && workload.VirtualStages == defaultStages {
		workload.VirtualStages = 0
	}
	if workload.Runtime == value.JAX {
		workload.ShardDegree = cmp.Or(workload.ShardDegree, 1) // TrainConfig.fsdp_devices (openpi training/config.py)
		workload.MemFraction = cmp.Or(workload.MemFraction, engine.JAXFraction)
	}
	resolveDegrees(workload)
	switch {
	case traits.Staged:
		workload.Schedule = cmp.Or(workload.Schedule, costmodel.OneFOneB)
		if workload.Schedule.Chunked() {
			workload.VirtualStages = cmp.Or(workload.VirtualStages, defaultStages)
		}
	case traits.ZeroStage > 0:
		workload.ShardDegree = cmp.Or(workload.ShardDegree, workload.World/traits.Groups, 1)
	}
}

// checkStrategy refuses combinations that no engine runs; else it is the one that does.
func checkStrategy(workload *costmodel.Workload) (engine.Engine, error) {
	if err := CheckPlaced(workload); err != nil {
		return nil, err
	}
	if err := checkBlocks(workload); err != nil {
		return nil, err
	}
	if err := cmp.Or(checkSelective(workload), checkOffloaded(workload)); err != nil {
		return nil, err
	}
	if workload.MemFraction != 0 && workload.Runtime != value.JAX {
		return nil, refuse("mem_fraction", workload.MemFraction, "%v is JAX's pool, and %v takes what it needs: leave it out, or add %v", workload.MemFraction, costmodel.Set("runtime", workload.Runtime), costmodel.Set("runtime", value.JAX))
	}
	if err := checkSplit(workload); err != nil {
		return nil, err
	}
	runtime, err := engine.Of(workload)
	if err != nil {
		return nil, err
	}
	if err := checkShares(workload); err != nil {
		return nil, err
	}
	if err := checkDegrees(workload); err != nil {
		return nil, err
	}
	return runtime, runtime.Refuse(workload)
}

// checkShares refuses parts of the parameters that the strategy does not have, or that the number of
// GPUs does not allow.
func checkShares(workload *costmodel.Workload) error {
	switch traits := workload.Strategy.Traits(); {
	case workload.HostShards && !traits.ByBlock:
		return refuse("offload", "cpu", "the plan keeps FSDP's parts in host memory, and %v has none: plan again", costmodel.Set("strategy", workload.Strategy))
	case traits.Sequential:
	case workload.World < 1:
		return refuse("strategy", workload.Strategy, "%s needs the number of GPUs", workload.Strategy)
	case workload.ShardDegree > 0 && !traits.Staged && workload.World%workload.ShardDegree != 0:
		return refuse("shard_degree", workload.ShardDegree, "%d does not divide the %d GPUs (%s)", workload.ShardDegree, workload.World, value.NearestDivisors(workload.ShardDegree, workload.World, nil))
	}
	return nil
}

// CheckPlaced refuses numbers of a strategy other than the workload's, which would have no effect. An
// open strategy (auto) takes all, and defaults may be explicit. Errors are [*costmodel.FieldError].
func CheckPlaced(workload *costmodel.Workload) error {
	traits := workload.Strategy.Traits()
	if err := checkPreset(workload); err != nil {
		return err
	}
	switch {
	case workload.VirtualStages < 0:
		return refuse("virtual_stages", workload.VirtualStages, "%d is no number of runs a GPU", workload.VirtualStages)
	case workload.ShardDegree < 0:
		return refuse("shard_degree", workload.ShardDegree, "%d is no number of GPUs", workload.ShardDegree)
	case !traits.Open && !traits.Staged && workload.Schedule != "" && workload.Schedule != costmodel.OneFOneB:
		return refuse("schedule", workload.Schedule, "%s is a pipeline's, and %v has none (%v does)", workload.Schedule, costmodel.Set("strategy", workload.Strategy), costmodel.Set("strategy", costmodel.Pipeline))
	}
	if err := checkVirtual(workload, &traits); err != nil {
		return err
	}
	if !traits.Open && workload.ShardDegree > 0 && traits.ZeroStage == 0 && (!traits.Staged || workload.DP.Count() == 1 && !equalStages(workload)) {
		return refuse("shard_degree", workload.ShardDegree, "%v cuts no parameters (zero1, zero2, zero3, fsdp and hsdp do)", costmodel.Set("strategy", workload.Strategy))
	}
	return nil
}

// checkSplit refuses schedules with a split backward under engines other than devmap's own. torch
// 2.11 has a class for ZBV alone, and what its halves of a backward keep was not measured.
func checkSplit(workload *costmodel.Workload) error {
	if !workload.Schedule.Split() || workload.Runtime == costmodel.Devmap {
		return nil
	}
	why := "torch has no class for it"
	if workload.Schedule == costmodel.ZBV {
		why = "what torch's class for it holds is not known"
	}
	return refuse("schedule", workload.Schedule, "%s splits the backward, and %s: %v runs it, and emit writes its order for torch (%s, %s, %s work here)",
		workload.Schedule, why, costmodel.Set("runtime", costmodel.Devmap), costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved)
}

// checkVirtual refuses virtual stages that the chosen strategy or schedule does not have.
func checkVirtual(workload *costmodel.Workload, traits *costmodel.Traits) error {
	schedule := workload.Schedule
	if schedule == "" && !traits.Open {
		schedule = costmodel.OneFOneB
	}
	switch {
	case workload.VirtualStages == defaultStages || workload.VirtualStages == 0:
	case !traits.Open && !traits.Staged:
		return refuse("virtual_stages", workload.VirtualStages, "%d is a pipeline's, and %v has none (%v %v does)", workload.VirtualStages,
			costmodel.Set("strategy", workload.Strategy), costmodel.Set("strategy", costmodel.Pipeline), costmodel.Set("schedule", costmodel.Interleaved))
	case schedule.Vee():
		return refuse("virtual_stages", workload.VirtualStages, "%s has two stages on each GPU, in the form of a V, not %d", schedule, workload.VirtualStages)
	case schedule != "" && schedule != costmodel.Interleaved:
		return refuse("virtual_stages", workload.VirtualStages, "%s runs one stage a GPU (%v takes %d)", schedule, costmodel.Set("schedule", costmodel.Interleaved), workload.VirtualStages)
	}
	return nil
}

// checkBlocks refuses a list of recomputed blocks where the engine takes all blocks or none.
// Transformers' gradient_checkpointing_enable has one switch for all of them.
func checkBlocks(workload *costmodel.Workload) error {
	if !workload.ListsRecomputed() || workload.Mode != costmodel.Train || workload.Runtime == costmodel.Devmap || workload.Runtime == value.Torch {
		return nil
	}
	return refuse("recompute", workload.Recompute, "%v recomputes all blocks or none (full or none); a list of blocks works with %v, and with %v and a wrapper of your own",
		costmodel.Set("runtime", workload.Runtime), costmodel.Set("runtime", costmodel.Devmap), costmodel.Set("runtime", value.Torch))
}

// checkOffloaded refuses to offload activations where no engine does so.
func checkOffloaded(workload *costmodel.Workload) error {
	switch {
	case workload.OffloadActivations == "":
		return nil
	case workload.Mode != costmodel.Train:
		return refuse("offload_activations", workload.OffloadActivations, "%v keeps no activations for a backward: it is for %v", costmodel.Set("mode", workload.Mode), costmodel.Set("mode", costmodel.Train))
	case workload.Runtime != costmodel.Devmap:
		return refuse("offload_activations", workload.OffloadActivations, "only devmap's engine moves activations to the host: %v with %v does; %v saves their memory elsewhere",
			costmodel.Set("runtime", costmodel.Devmap), costmodel.Set("strategy", costmodel.Pipeline), costmodel.Set("recompute", costmodel.RecomputeFull))
	case !workload.Strategy.Traits().Staged:
		return refuse("offload_activations", workload.OffloadActivations, "devmap's engine moves activations in pipelines, also of one GPU: %v", costmodel.Set("strategy", costmodel.Pipeline))
	}
	return nil
}

// checkSelective refuses selective recompute except under torchtitan. Accelerate, Lightning and
// DeepSpeed users call Transformers' gradient_checkpointing_enable, which recomputes whole blocks.
func checkSelective(workload *costmodel.Workload) error {
	if workload.Recompute != value.RecomputeSelective || workload.Mode != costmodel.Train || workload.Runtime == value.Torch || equalStages(workload) {
		return nil
	}
	return refuse("recompute", workload.Recompute,
		"selective is torchtitan's (of a block, attention's output and every second product are kept); under %v blocks are recomputed whole: full and none work, or selective with %v, hsdp, ddp or pipeline and %v",
		costmodel.Set("runtime", workload.Runtime), costmodel.Set("strategy", costmodel.FSDP), costmodel.Set("runtime", value.Torch))
}
