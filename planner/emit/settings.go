package emit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// outside is a setting that changes memory and that a target's file and command
// do not set.
type outside struct {
	field string
	// value is the plan's; "" if it is the engine's own default, or means nothing.
	value func(workload *costmodel.Workload) string
	// how the user sets each value; "" is for the values that have no entry.
	how map[string]string
}

// settingsOutside are the settings of each target that its users make
// elsewhere. A target that is not here writes all, or refuses the plan.
var settingsOutside = map[string][]outside{
	"accelerate":   {lossOf(""), lossAlone, average, recomputation, optimization, inBackward, ligerKernels, eightBits, adapters, adapterType, accumulation, autocast},
	"deepspeed":    slices.Concat([]outside{lossOf(""), lossAlone, average, recomputation, optimization, ligerKernels, adapters, adapterType, quantization, kernel, zeroGroups, dropout, inBackward, compilation, eightBits, packs, scriptEvaluation}, ofData),
	"ms-swift":     {lossOf("--use_liger_kernel true also replaces other layers"), lossAlone, average, partialRecomputation, unnamedOptimization, compilation, eightBits, adapterType},
	"openpi":       {lossOf(""), lossAlone, jaxRecomputation, jaxOptimization},
	"transformers": slices.Concat(ofData, everywhere, ofModel, []outside{fp8Launch, packs, gradientViews, loadedAs, groups}),
	"trl":          slices.Concat(ofData, everywhere, []outside{trlFP8, gradientViews, groups, adapterType}),
	"llamafactory": slices.Concat(withoutPixels, everywhere, []outside{noFP8, noVarlen, gradientViews, llamaFactoryTypes, llamaFactoryAdapters, groups}),
	"lightning": slices.Concat(ofData, everywhere, ofModel, []outside{
		recomputation, optimization, fp8Module, packs, lightningEvaluation, lightningLiger, compiled, groups, lightningMixed, lightningOffload,
	}),
	"axolotl": slices.Concat(ofData, everywhere, []outside{axolotlPacks, gradientViews, axolotlTypes, axolotlCompile, zeroGroups, adapterType}),
	"accelerate-config": slices.Concat(ofData, everywhere, ofModel, []outside{
		rowwiseAlone, packs, scriptEvaluation, gradientViews, loadedAs, fsdp1Groups, recomputationOutside, optimization, ligerKernels, compilation, accumulation,
	}),
	"torchtune":      slices.Concat(ofData, []outside{average, partialRecomputation, tuneLoss, tuneOptimization, tunePacks, tuneKernel, groups, tuneAdapters, tuneEvaluation}),
	"torch-schedule": {lossOf(""), average, recomputation, hostActivations, optimization, adapters, adapterType, quantization, kernel, autocast},
}

func (target *Target) outside(plan *devicemap.Plan) []costmodel.Message {
	var notes []costmodel.Message
	workload := &plan.Workload
	for _, setting := range settingsOutside[target.Name] {
		value := setting.value(workload)
		if value == "" {
			continue
		}
		how, known := setting.how[value]
		if !known {
			how = setting.how[""]
		}
		if setting.field == "lora_rank" { // the targets belong to it
			targets := strings.Replace(pythonList(workload.LoRATargets), `["all-linear"]`, `"all-linear"`, 1) // PEFT compares a string alone
			how = fmt.Sprintf(how, workload.LoRARank, targets)
		}
		notes = append(notes, costmodel.Messagef("the peaks count %v, which %s does not set: %s", costmodel.Set(setting.field, quote.Comment(value)), target.Name, how))
	}
	return notes
}

// trained is a value of training alone, unless it is one of the usual.
func trained(value func(*costmodel.Workload) string, usual ...string) func(*costmodel.Workload) string {
	return func(workload *costmodel.Workload) string {
		if found := value(workload); workload.Mode == costmodel.Train && !slices.Contains(usual, found) {
			return found
		}
		return ""
	}
}

// given is "true" for a switch that is on.
func given(on bool) string {
	if on {
		return "true"
	}
	return ""
}

// lossOf is the loss, with what else the engine has for a fused one.
func lossOf(engine string) outside {
	fused := "use Liger Kernel's fused linear cross-entropy"
	if engine != "" {
		fused += "; " + engine
	}
	return outside{"loss", trained(func(w *costmodel.Workload) string { return w.Loss }, "eager"), map[string]string{
		"chunked": "compute the cross-entropy over a part of the tokens at a time, or the logits of all tokens stay in memory",
		"fused":   fused,
		"tiled":   "compute the cross-entropy a tile of the logits at a time, as TRL does (trl/trainer/utils.py, add_fused_lm_head)",
		"eager":   "TRL makes a tile of the logits at a time: give the trainer a compute_loss_func that takes all of them",
	}}
}

var (
	programLoss = outside{ // the program's own is in the preset
		"loss", trained(func(w *costmodel.Workload) string {
			switch {
			case (w.Preset == "axolotl" || w.Liger) && w.Loss == "fused": // the file has it, or its note does
				return ""
			case strings.HasPrefix(w.Preset, "trl-") && !w.Liger: // Liger's is in its place
				return strings.TrimSuffix(cmp.Or(w.Loss, "eager"), "tiled")
			}
			return strings.TrimSuffix(w.Loss, "eager")
		}), lossOf("").how,
	}
	recomputationOutside = outside{
		"recompute", trained(func(w *costmodel.Workload) string {
			if w.Strategy == costmodel.DDP && w.Recompute == costmodel.RecomputeFull {
				return w.Recompute
			}
			return ""
		}), recomputation.how,
	}
	lossAlone = outside{ // trainers keep it alone
		"loss_only", trained(func(w *costmodel.Workload) string {
			return given(w.LossOnly && w.Preset == "" && w.Strategy.Traits().Sequential)
		}), map[string]string{"": "in the training loop keep no reference to the logits when the backward pass starts"},
	}
	average = outside{
		"ema", trained(func(w *costmodel.Workload) string { return given(w.EMA) }), map[string]string{"": "keep the average in the training script, as with torch.optim.swa_utils.AveragedModel"},
	}
	recomputation = outside{
		"recompute", trained(func(w *costmodel.Workload) string { return w.Recompute }, "none"),
		map[string]string{
			"full":      "call model.gradient_checkpointing_enable(), or checkpoint every block with torch.utils.checkpoint",
			"selective": "checkpoint with torch.utils.checkpoint.create_selective_checkpoint_contexts",
			"auto":      "checkpoint the blocks of each stage whose \"recompute\" in the plan is full",
			"":          "wrap these blocks, and no others, in torch's checkpoint_wrapper",
		},
	}
	hostActivations = outside{
		"offload_activations", trained(func(w *costmodel.Workload) string { return w.OffloadActivations }), map[string]string{"": "run these blocks, and no others, under torch.autograd.graph.save_on_cpu(pin_memory=True)"},
	}
	partialRecomputation = outside{
		"recompute", trained(func(w *costmodel.Workload) string { return w.Recompute }, "none", "full"),
		map[string]string{"selective": recomputation.how["selective"], "auto": recomputation.how["auto"], "": "the program recomputes all blocks or none: plan with --recompute full or none"},
	}
	jaxRecomputation = outside{
		"recompute", trained(func(w *costmodel.Workload) string { return w.Recompute }, "none"), map[string]string{"": "change jax.checkpoint (nn.remat) in the code of the model"},
	}
	optimizers = map[string]string{
		costmodel.AdamW:     "use torch.optim.AdamW(fused=True)",
		"adamw-foreach":     "use torch.optim.AdamW(foreach=True)",
		"adamw-8bit":        "use bitsandbytes.optim.AdamW8bit",
		"paged-adamw-8bit":  "use bitsandbytes.optim.PagedAdamW8bit",
		"paged-adamw-32bit": "use bitsandbytes.optim.PagedAdamW32bit",
		"adamw-torch-8bit":  "use torchao.optim.AdamW8bit",
		"adamw-torch-4bit":  "use torchao.optim.AdamW4bit(block_size=256)",
		costmodel.SGD:       "use torch.optim.SGD without momentum",
		"sgd-momentum":      "use torch.optim.SGD with a momentum",
		"adafactor":         "use an Adafactor with factored second moments",
		"":                  "create this optimizer in the training script",
	}
	inBackward = outside{
		"optimizer_in_backward", trained(func(w *costmodel.Workload) string { return given(w.OptimizerInBackward) }), map[string]string{"": "give each parameter an optimizer that steps in its register_post_accumulate_grad_hook"},
	}
	ligerKernels = outside{
		"liger", trained(func(w *costmodel.Workload) string { return given(w.Liger) }), map[string]string{"": "set use_liger_kernel of TrainingArguments"},
	}
	eightBits = float8Of(map[string]string{
		"tensorwise":          "set mixed_precision: fp8, backend AO and enable_fsdp_float8_all_gather: false in the file of accelerate launch",
		"tensorwise-gathered": "set mixed_precision: fp8 and backend AO in the file of accelerate launch",
		"rowwise":             "set fp8: true and fp8_config.recipe: rowwise in axolotl's file",
	})
	compilation = outside{
		"compile", trained(func(w *costmodel.Workload) string { return given(w.Compile) }), map[string]string{"": "set torch_compile of TrainingArguments"},
	}
	optimization        = outside{"optimizer", trained(func(w *costmodel.Workload) string { return w.Optimizer }), optimizers}
	unnamedOptimization = outside{
		"optimizer", trained(func(w *costmodel.Workload) string {
			if w.Optimizer == costmodel.AdamW || swiftOptimizers[w.Optimizer] != "" { // the default, or named
				return ""
			}
			return w.Optimizer
		}), optimizers,
	}
	jaxOptimization = outside{
		"optimizer", trained(func(w *costmodel.Workload) string { return w.Optimizer }, costmodel.AdamW), map[string]string{"": "set optimizer in CONFIG"},
	}
	adapters = outside{
		"lora_rank", trained(func(w *costmodel.Workload) string { return above(w.LoRARank) }), map[string]string{"": "add the adapters with peft.get_peft_model(model, LoraConfig(r=%d, target_modules=%s))"},
	}
	adapterType = outside{
		"lora_precision", trained(func(w *costmodel.Workload) string {
			// DeepSpeed casts them with the model, and TRL those of a quantised one (trl/trainer/sft_trainer.py).
			if w.LoRARank == 0 || strings.HasPrefix(string(w.Strategy), "zero") || w.Preset == "trl-sft" && w.Quantize != "" && w.LoRAPrecision == "bf16" {
				return ""
			}
			return w.LoRAPrecision
		}, "fp32"),
		map[string]string{"": "PEFT makes 16-bit adapters fp32 unless get_peft_model has autocast_adapter_dtype=False"},
	}
	accumulation = outside{
		"micro_batches", trained(func(w *costmodel.Workload) string { return fmt.Sprint(max(1, w.MicroBatches)) }, "1"), map[string]string{"": "accumulate the gradients of so many backward passes before each optimizer step"},
	}
	quantization = outside{
		"quantize", func(w *costmodel.Workload) string { return w.Quantize },
		map[string]string{
			"nf4":  `load the model with BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)`,
			"int8": "load the model with BitsAndBytesConfig(load_in_8bit=True)",
		},
	}
	kernel = outside{
		"attention", func(w *costmodel.Workload) string {
			if attention(w) == "" {
				return ""
			}
			return w.Attention
		},
		map[string]string{"": `load the model with attn_implementation="flash_attention_2"`, "eager": `load the model with attn_implementation="eager"`},
	}
	autocast = outside{
		"precision", trained(func(w *costmodel.Workload) string {
			if w.Precision == costmodel.BF16Mixed || w.Precision == costmodel.FP16Mixed {
				return string(w.Precision)
			}
			return ""
		}),
		map[string]string{
			"bf16-mixed": `run the forward pass under torch.autocast("cuda", torch.bfloat16)`,
			"16-mixed":   `run the forward pass under torch.autocast("cuda", torch.float16)`,
		},
	}
)

// pythonList is a list of texts in Python.
func pythonList(texts []string) string {
	list := "["
	for i, text := range texts {
		if i > 0 {
			list += ", "
		}
		list += quote.Python(text)
	}
	return list + "]"
}

// gridTargets take the plans of engines whose layers no other program has.
var gridTargets = map[string]string{"megatron": "megatron, megatron-bridge, ms-swift-megatron or verl", "torchtitan": "torchtitan", costmodel.LlamaCPP: "llama.cpp, llama-swap, docker-compose or ollama", costmodel.VLLM: "vllm", costmodel.SGLang: "sglang"}
