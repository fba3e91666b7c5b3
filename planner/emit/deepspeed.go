package emit

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// deepSpeedRuntime is the name of DeepSpeed among runtimes.
const deepSpeedRuntime = "deepspeed"

// DeepSpeed reads its settings: deepspeed.initialize, Trainer's deepspeed=,
// ms-swift's --deepspeed.
var deepSpeed = register(&Target{
	Name: "deepspeed", File: "ds_config.json",
	Example: "llama-3.2-1b --gpus 2 --mode train --strategy zero2", Golden: []string{"zero1-true", "zero2", "zero3"},
	needs: []need{
		equalHosts,
		runtime(deepSpeedRuntime, "DeepSpeed", costmodel.Messagef("%v, zero2 and zero3 are", costmodel.Set("strategy", "zero1"))),
		training("deepspeed.initialize trains"),
	},
	Write: zeroFile, Usage: initialize,
})

// zeroConfig is what deepspeed.initialize reads (DeepSpeed 0.19.8,
// runtime/config.py). Where the plan was made without a file of the user's,
// sizes are left out: DeepSpeed's own are the plan's.
type zeroConfig struct {
	MicroBatch   int64            `json:"train_micro_batch_size_per_gpu"`
	Accumulation int64            `json:"gradient_accumulation_steps"`
	TrainBatch   int64            `json:"train_batch_size"`
	Clipping     float64          `json:"gradient_clipping,omitempty"`
	BF16         map[string]bool  `json:"bf16,omitempty"`
	FP16         map[string]bool  `json:"fp16,omitempty"`
	DataTypes    map[string]any   `json:"data_types,omitempty"`
	Zero         zeroOptimization `json:"zero_optimization"`
	// An optimizer of torch's own is used as it is.
	Untested bool  `json:"zero_allow_untested_optimizer"`
	ForceCPU *bool `json:"zero_force_ds_cpu_optimizer,omitempty"`
}

type zeroOptimization struct {
	Stage        int            `json:"stage"`
	Contiguous   *bool          `json:"contiguous_gradients,omitempty"`
	Overlap      *bool          `json:"overlap_comm,omitempty"`
	Reduce       int64          `json:"reduce_bucket_size,omitempty"`
	Allgather    int64          `json:"allgather_bucket_size,omitempty"`
	Prefetch     *int64         `json:"stage3_prefetch_bucket_size,omitempty"`
	Live         *int64         `json:"stage3_max_live_parameters,omitempty"`
	Reuse        *int64         `json:"stage3_max_reuse_distance,omitempty"`
	Persistence  *int64         `json:"stage3_param_persistence_threshold,omitempty"`
	SubGroup     int64          `json:"sub_group_size,omitempty"`
	GatherOnSave bool           `json:"stage3_gather_16bit_weights_on_model_save,omitempty"`
	Optimizer    map[string]any `json:"offload_optimizer,omitempty"`
	Params       map[string]any `json:"offload_param,omitempty"`
}

// zeroFile writes a configuration with the settings that the plan counts.
func zeroFile(to io.Writer, input *Input) error {
	workload := &input.Plan.Workload
	steps := max(1, workload.MicroBatches)
	config := zeroConfig{
		MicroBatch: workload.Batch / steps, Accumulation: steps, TrainBatch: workload.Batch * max(1, workload.World),
		Zero: zeroOptimization{Stage: workload.Strategy.Traits().ZeroStage}, Untested: true,
	}
	config.precision(workload)
	config.settings(workload)
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		return err
	}
	_, err = to.Write(append(text, '\n'))
	return err
}

// precision are the sections of the plan's precision; fp32 has none.
func (config *zeroConfig) precision(workload *costmodel.Workload) {
	set := workload.DeepSpeed
	switch {
	case set != nil && set.FP32Reduction: // a 16-bit module without a section
	case workload.Precision == costmodel.BF16Mixed:
		config.BF16 = map[string]bool{"enabled": true}
	case workload.Precision == costmodel.BF16True:
		config.BF16 = map[string]bool{"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}
	case workload.Precision == costmodel.FP16Mixed || workload.Precision == costmodel.FP16True:
		config.FP16 = map[string]bool{"enabled": true}
	}
	if set != nil && set.FP32Gradients && !set.FP32Reduction {
		config.DataTypes = map[string]any{"grad_accum_dtype": "fp32"}
	}
}

// settings are those of the file that the plan was made with.
func (config *zeroConfig) settings(workload *costmodel.Workload) {
	set, zero := workload.DeepSpeed, &config.Zero
	if set == nil {
		return
	}
	config.Clipping = set.Clipping
	zero.Contiguous, zero.Overlap, zero.Reduce, zero.Allgather = &set.Contiguous, &set.Overlap, set.ReduceBucket, set.AllgatherBucket
	if zero.Stage == 3 {
		zero.Prefetch, zero.Live, zero.Reuse, zero.Persistence = &set.Prefetch, &set.Live, &set.Reuse, &set.Persistence
		zero.SubGroup, zero.GatherOnSave = set.SubGroup, set.GatherOnSave
	}
	if set.OffloadOptimizer {
		zero.Optimizer = map[string]any{"device": "cpu", "pin_memory": !set.PageableOptimizer}
		config.ForceCPU = new(bool)
	}
	if set.OffloadParams {
		zero.Params = map[string]any{"device": "cpu", "pin_memory": !set.PageableParams}
	}
}

// initialize is how DeepSpeed's own users read the file.
func initialize(input *Input, file string) (usage, note string) {
	workload := &input.Plan.Workload
	hosts, each := hostsOf(input.Plan)
	where := ""
	if hosts > 1 { // launcher/runner.py, fetch_hostfile: a line for each host, as in node1 slots=8
		where = fmt.Sprintf("--hostfile HOSTFILE --num_nodes %d ", hosts)
	}
	usage = fmt.Sprintf("deepspeed %s--num_gpus %d SCRIPT, which calls deepspeed.initialize(model=model, optimizer=optimizer, config=%s)", where, each, quote.Python(file))
	if workload.Strategy == costmodel.Zero3 {
		note = fmt.Sprintf("the plan counts a model that is cut as it is built: inside deepspeed.zero.Init(config_dict_or_path=%s), or by from_pretrained once Trainer has read the file", quote.Python(file))
	}
	return usage, note
}
