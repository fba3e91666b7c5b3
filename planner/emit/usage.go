package emit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// transformers is the call that loads a model under the map, as the plan
// counts it (transformers/modeling_utils.py, from_pretrained).
func transformers(p *devicemap.Plan, file string) string {
	w := &p.Workload
	args := []string{"MODEL", fmt.Sprintf("device_map=json.load(open(%q))", file), "dtype=" + loaded(w)}
	if a := attention(w); a != "" {
		args = append(args, fmt.Sprintf("attn_implementation=%q", a))
	}
	switch w.Quantize {
	case costmodel.NF4:
		args = append(args, `quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)`)
	case costmodel.Int8:
		args = append(args, "quantization_config=BitsAndBytesConfig(load_in_8bit=True)")
	}
	if offloads(p) {
		args = append(args, `offload_folder="offload"`)
	}
	return "AutoModelForCausalLM.from_pretrained(" + strings.Join(args, ", ") + ")"
}

// loaded is the type that weights are loaded in: autocast's are fp32.
func loaded(w *costmodel.Workload) string {
	switch {
	case w.StoredTypes || w.Precision == "":
		return `"auto"`
	case w.Precision.WeightBytes() == 4:
		return "torch.float32"
	case w.Precision == costmodel.FP16True:
		return "torch.float16"
	}
	return "torch.bfloat16"
}

// attention is Transformers' name of a kernel that is not its default.
func attention(w *costmodel.Workload) string {
	switch w.Attention {
	case costmodel.EagerAttention:
		return "eager"
	case costmodel.FlashAttention:
		return "flash_attention_2"
	default:
		return ""
	}
}

// swift is ms-swift's whole command: its own defaults are LoRA and
// checkpoints (swift/arguments/base_args/base_args.py, tuner_type;
// swift/trainers/arguments.py, gradient_checkpointing).
func swift(p *devicemap.Plan, file string) string {
	w := &p.Workload
	args := []string{"--model MODEL", "--device_map " + file}
	add := func(name, value string) { args = append(args, "--"+name+" "+value) }
	if a := attention(w); a != "" {
		add("attn_impl", a)
	}
	switch w.Quantize {
	case costmodel.NF4:
		add("quant_method", "bnb --quant_bits 4")
	case costmodel.Int8:
		add("quant_method", "bnb --quant_bits 8")
	}
	if w.Mode != costmodel.Train {
		if !w.StoredTypes && w.Precision != "" {
			add("torch_dtype", strings.TrimPrefix(loaded(w), "torch."))
		}
		return "swift infer " + strings.Join(args, " ")
	}
	args = append(args, swiftPrecision(w)...)
	if w.LoRARank > 0 {
		add("tuner_type", "lora --lora_rank "+strconv.FormatInt(w.LoRARank, 10)+" --target_modules "+strings.Join(w.LoRATargets, " "))
	} else {
		add("tuner_type", "full")
	}
	add("per_device_train_batch_size", strconv.FormatInt(w.MicroBatch(), 10))
	if w.MicroBatches > 1 {
		add("gradient_accumulation_steps", strconv.FormatInt(w.MicroBatches, 10))
	}
	add("max_length", strconv.FormatInt(w.Seq, 10))
	add("gradient_checkpointing", strconv.FormatBool(w.Recompute == costmodel.RecomputeFull))
	if o := swiftOptimizers[w.Optimizer]; o != "" {
		add("optim", o)
	}
	return "swift sft " + strings.Join(args, " ") + " --dataset DATASET"
}

// swiftPrecision are the types of weights and compute. Weights in fp32 make
// it take fp16 unless it is told otherwise (model_args.py,
// _init_mixed_precision).
func swiftPrecision(w *costmodel.Workload) []string {
	if w.StoredTypes || w.Precision == "" {
		return nil
	}
	out := []string{"--torch_dtype " + strings.TrimPrefix(loaded(w), "torch.")}
	switch w.Precision {
	case costmodel.BF16Mixed:
		out = append(out, "--bf16 true")
	case costmodel.FP16Mixed:
		out = append(out, "--fp16 true")
	case costmodel.FP32True, costmodel.FP16True: // Trainer's loss scale refuses fp16 gradients
		out = append(out, "--fp16 false --bf16 false")
	default:
	}
	return out
}

// swiftOptimizers are Trainer's names of those that are not its default
// (transformers/training_args.py, OptimizerNames).
var swiftOptimizers = map[costmodel.Optimizer]string{
	costmodel.AdamWForeach: "adamw_torch", costmodel.AdamW8bit: "adamw_bnb_8bit",
	costmodel.SGD: "sgd", costmodel.Adafactor: "adafactor",
}

// oneProcess warns of what ms-swift makes of a map on several GPUs where it
// runs several processes (model_args.py, _init_device_map).
func oneProcess(p *devicemap.Plan) string {
	gpus := make(map[devicemap.Device]bool)
	for _, e := range p.DeviceMap {
		if e.Device >= 0 {
			gpus[e.Device] = true
		}
	}
	if len(gpus) < 2 {
		return ""
	}
	return "the map is for one process: with NPROC_PER_NODE=n, rank r adds r to every device number in it, so that ranks meet on GPUs; for n processes of their own GPUs multiply the numbers by n first"
}

func offloads(p *devicemap.Plan) bool {
	for _, e := range p.DeviceMap {
		if e.Device < 0 {
			return true
		}
	}
	return false
}
