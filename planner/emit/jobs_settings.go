package emit

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// ofData are settings of samples, which no program's file has.
var ofData = append([]outside{
	{"max_pixels", trained(func(w *costmodel.Workload) string { return above(w.MaxPixels) }), map[string]string{"": "give the model's image processor this largest area"}},
}, withoutPixels...)

var withoutPixels = []outside{
	{"lengths", trained(func(w *costmodel.Workload) string {
		if w.Lengths.Max == 0 {
			return ""
		}
		return fmt.Sprintf("%g,%d", w.Lengths.Mean, w.Lengths.Max)
	}), map[string]string{"": "the samples of the data set have these tokens (mean, longest)"}},
	{"target_seq", trained(func(w *costmodel.Workload) string {
		if w.TargetSeq == w.Seq { // a decoder's
			return ""
		}
		return above(w.TargetSeq)
	}), map[string]string{"": "the targets of the data set have these tokens"}},
	{"images", trained(func(w *costmodel.Workload) string { return above(w.Images) }), map[string]string{"": "the samples of the data set have so many images"}},
	{"image_size", trained(func(w *costmodel.Workload) string { return above(w.ImageSize) }), map[string]string{"": "the images of the data set have this side, in pixels"}},
	{"label_tokens", trained(func(w *costmodel.Workload) string { return fmt.Sprint(w.LabelTokens) }, "0"), map[string]string{"": "the samples of the data set have labels on so many tokens"}},
	{"eval_samples", trained(func(w *costmodel.Workload) string { return above(w.EvalSamples) }), map[string]string{"": "give the trainer compute_metrics, and so many samples to evaluate"}},
}

// everywhere are settings that no program's file has.
var everywhere = []outside{programLoss, average, partialRecomputation, unnamedOptimization, inBackward}

// ofModel are settings of a model that a script makes.
var ofModel = []outside{
	adapters, adapterType, quantization, kernel, dropout,
}

var dropout = outside{
	"lora_dropout", trained(func(w *costmodel.Workload) string { return given(w.LoRARank > 0 && w.LoRADropout) }), map[string]string{"": "give LoraConfig a lora_dropout above 0"},
}

// above is a number, if it is above 0.
func above(number int64) string {
	if number <= 0 {
		return ""
	}
	return fmt.Sprint(number)
}

// precisionWhere is the precision of a plan under a condition.
func precisionWhere(meant func(*costmodel.Workload) bool) func(*costmodel.Workload) string {
	return trained(func(w *costmodel.Workload) string {
		if meant(w) {
			return string(w.Precision)
		}
		return ""
	})
}

// degreeWhere is the number of GPUs of a group that shards, if it is not all.
func degreeWhere(meant func(*costmodel.Workload) bool) func(*costmodel.Workload) string {
	return trained(func(w *costmodel.Workload) string {
		if w.ShardDegree == w.World || !meant(w) {
			return ""
		}
		return above(w.ShardDegree)
	})
}

// float8Of is how users of a program switch torchao's products on, but those that the
// file has.
func float8Of(how map[string]string, keys ...string) outside {
	return outside{"float8", trained(func(w *costmodel.Workload) string { return w.Float8 }, keys...), how}
}

// packingBut are the ways of packing but those that the file has.
func packingBut(how string, keys ...string) outside {
	return outside{"packing", trained(func(w *costmodel.Workload) string { return w.Packing }, append(keys, "none")...), map[string]string{"": how}}
}

func evaluationOf(how string) outside {
	return outside{"eval_batch", trained(func(w *costmodel.Workload) string { return above(w.EvalBatch) }), map[string]string{"": how}}
}

var (
	packs        = packingBut("pack the samples in the script's data set")
	noVarlen     = packingBut("LLaMA-Factory has no such packing: its own are wrapped (packing) and packed (neat_packing)", "wrapped", "packed")
	axolotlPacks = packingBut("axolotl has no such packing: its own is packed (sample_packing)", "packed")

	// TrainingArguments.bf16 overwrites fp8 (transformers/training_args.py, __post_init__).
	fp8Launch = float8Of(map[string]string{
		"tensorwise":          "the file has no bf16, which would overwrite it; start SCRIPT with accelerate launch --config_file and the file of emit --for accelerate-config, or under torchrun with ACCELERATE_MIXED_PRECISION=fp8, ACCELERATE_FP8_BACKEND=AO and ACCELERATE_FP8_ENABLE_FSDP_FLOAT8_ALL_GATHER=false",
		"tensorwise-gathered": "the file has no bf16, which would overwrite it; start SCRIPT with accelerate launch --config_file and the file of emit --for accelerate-config, or under torchrun with ACCELERATE_MIXED_PRECISION=fp8 and ACCELERATE_FP8_BACKEND=AO",
		"rowwise":             noRecipe,
	})
	trlFP8 = float8Of(map[string]string{ // trl sft starts accelerate launch, which sets the environment
		"rowwise": noRecipe,
		"":        "the file has bf16: false, as bf16 would overwrite it; give trl sft --accelerate_config the file of emit --for accelerate-config",
	})
	noFP8        = float8Of(map[string]string{"": "LLaMA-Factory 0.9.5 trains without it, whatever its file says"})
	fp8Module    = float8Of(map[string]string{"": "call torchao.float8.convert_to_float8_training in configure_model"})
	rowwiseAlone = float8Of(map[string]string{"": noRecipe}, "tensorwise", "tensorwise-gathered")

	gradientViews = outside{
		"gradient_as_bucket_view", trained(func(w *costmodel.Workload) string { return given(w.GradientViews && w.Strategy == costmodel.DDP) }), map[string]string{"": "TrainingArguments has no key for it: give the Accelerator DistributedDataParallelKwargs(gradient_as_bucket_view=True)"},
	}
	lightningEvaluation = evaluationOf("give the DataLoader of the validation this batch")
	scriptEvaluation    = evaluationOf("set eval_strategy and per_device_eval_batch_size in SCRIPT")
	lightningLiger      = outside{"liger", ligerKernels.value, map[string]string{"": "load the model with liger_kernel.transformers.AutoLigerKernelForCausalLM"}}
	axolotlCompile      = outside{"compile", compilation.value, map[string]string{"": "add torch_compile: true to the file"}}
	compiled            = outside{"compile", compilation.value, map[string]string{"": "compile the model with torch.compile in configure_model"}}

	// Accelerate makes the fp32 weights of FSDP.
	loadedAs = outside{"precision", precisionWhere(func(w *costmodel.Workload) bool {
		mixed := w.Precision == costmodel.BF16Mixed || w.Precision == costmodel.FP16Mixed
		return !w.StoredTypes && (!mixed || w.Strategy == costmodel.DDP && w.LoRARank == 0)
	}), map[string]string{"": "load the model with dtype=torch.float32", "bf16-true": "load the model with dtype=torch.bfloat16", "16-true": "load the model with dtype=torch.float16"}}
	llamaFactoryTypes = outside{"precision", precisionWhere(func(w *costmodel.Workload) bool {
		return w.Precision == costmodel.FP16True || w.LoRARank > 0 && w.Precision == costmodel.FP32True
	}), map[string]string{"16-true": "LLaMA-Factory loads the type of the checkpoint: take one in fp16", "32-true": "LLaMA-Factory loads the type of the checkpoint for adapters: take one in fp32"}}
	llamaFactoryAdapters = outside{"lora_precision", trained(func(w *costmodel.Workload) string {
		if w.LoRARank == 0 || w.Precision == costmodel.BF16True || underZero(w) { // DeepSpeed casts them
			return ""
		}
		return w.LoRAPrecision
	}, "fp32"), map[string]string{"": "LLaMA-Factory has 16-bit adapters under pure_bf16 alone, with the precision bf16-true"}}
	axolotlTypes = outside{"precision", precisionWhere(func(w *costmodel.Workload) bool {
		zero, full := underZero(w), w.LoRARank == 0
		return w.Precision == costmodel.FP16True || full && (zero && w.Precision == costmodel.BF16True ||
			!zero && (w.Precision == costmodel.BF16Mixed || w.Precision == costmodel.FP16Mixed))
	}), map[string]string{
		"bf16-mixed": "axolotl loads a model that it trains in full as bf16 (bf16: true), so that the run is bf16-true",
		"bf16-true":  "DeepSpeed keeps fp32 copies of the weights under bf16: true, so that the run is bf16-mixed",
		"16-mixed":   "axolotl loads a model that it trains in full as fp16 (fp16: true), and a GradScaler refuses fp16 gradients",
		"16-true":    "axolotl has fp16 under a GradScaler alone (fp16: true, with adapters); its bf16: true trains in 16 bits",
	}}
	lightningMixed = outside{"precision", precisionWhere(func(w *costmodel.Workload) bool {
		return w.Preset == "lightning:model-parallel" && w.Precision == costmodel.BF16Mixed
	}), map[string]string{"": "the file has 32-true; give fully_shard in configure_model mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)"}}
	lightningOffload = outside{"offload", trained(func(w *costmodel.Workload) string {
		if w.HostShards && w.Preset == "lightning:model-parallel" {
			return "cpu"
		}
		return ""
	}), map[string]string{"": "give fully_shard in configure_model offload_policy=CPUOffloadPolicy()"}}

	groups     = outside{"shard_degree", degreeWhere(func(*costmodel.Workload) bool { return true }), zeroGroups.how}
	zeroGroups = outside{
		"shard_degree", degreeWhere(underZero), map[string]string{"": "the program shards over all GPUs; groups of GPUs are in the file of accelerate-config (HSDP)"},
	}
	fsdp1Groups = outside{
		"shard_degree", degreeWhere(func(w *costmodel.Workload) bool { return strings.HasPrefix(w.Preset, "transformers:fsdp1") }), zeroGroups.how,
	}
)

const noRecipe = "Accelerate has no such recipe: axolotl has (fp8_config)"
