package emit

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// decoder is what a config.json says of a language model's decoder. Fields that are
// left out have the defaults of transformers' classes.
type decoder struct {
	Type         string  `json:"model_type"`
	Hidden       int64   `json:"hidden_size"`
	Layers       int64   `json:"num_hidden_layers"`
	Heads        int64   `json:"num_attention_heads"`
	KVHeads      int64   `json:"num_key_value_heads"`
	Head         int64   `json:"head_dim"`
	Intermediate int64   `json:"intermediate_size"`
	Vocab        int64   `json:"vocab_size"`
	Positions    int64   `json:"max_position_embeddings"`
	Epsilon      float64 `json:"rms_norm_eps"`
	Theta        float64 `json:"rope_theta"`
	Tied         bool    `json:"tie_word_embeddings"`
	Bias         bool    `json:"attention_bias"`
	MLPBias      bool    `json:"mlp_bias"`
	Window       int64   `json:"sliding_window"`
	Windowed     *bool   `json:"use_sliding_window"`
	Activation   string  `json:"hidden_act"`
	Scaling      scaling `json:"rope_scaling"`
	Rope         scaling `json:"rope_parameters"` // of transformers 5
	Quantized    any     `json:"quantization_config"`
}

// scaling are the parameters of rotary embeddings.
type scaling struct {
	Type     string  `json:"rope_type"`
	Old      string  `json:"type"`
	Factor   float64 `json:"factor"`
	Low      float64 `json:"low_freq_factor"`
	High     float64 `json:"high_freq_factor"`
	Original int64   `json:"original_max_position_embeddings"`
	Theta    float64 `json:"rope_theta"`
}

// decoderOf reads a plan's config.json.
func decoderOf(input *Input) (model decoder, err error) {
	if err = json.Unmarshal(input.Config, &model); err != nil {
		return model, refused("the config.json of the plan for %q is of no language model: %v", input.Plan.Model.Name, err)
	}
	model.KVHeads = cmp.Or(model.KVHeads, model.Heads)
	model.Head = cmp.Or(model.Head, model.Hidden/max(1, model.Heads))
	model.Positions = cmp.Or(model.Positions, input.Plan.Workload.Seq)
	model.Epsilon = cmp.Or(model.Epsilon, 1e-6)
	model.Theta = cmp.Or(model.Theta, model.Rope.Theta, 10000)
	if model.Scaling == (scaling{}) {
		model.Scaling = model.Rope
	}
	model.Scaling.Type = cmp.Or(model.Scaling.Type, model.Scaling.Old, "default")
	if model.Windowed != nil && !*model.Windowed {
		model.Window = 0
	}
	return model, nil
}

// llamaScaled reports Llama 3.1's rotary embeddings, whose other numbers are constants
// in torchtune and torchtitan.
func (model *decoder) llamaScaled() bool {
	s := &model.Scaling
	return s.Type == "llama3" && s.Low == 1 && s.High == 4 && s.Original == 8192
}

// plain refuses what a program's own layers of a family do not have.
func (model *decoder) plain(plan *devicemap.Plan, program string, families ...string) error {
	var has string
	switch {
	case !slices.Contains(families, model.Type):
		return &refusal{costmodel.Messagef("the plan for %q is of a model of type %q, and devmap writes files of %s for %s alone: plan it with %v, which takes every type", plan.Model.Name, model.Type, program, strings.Join(families, ", "), costmodel.Set("preset", "transformers"))}
	case model.Head*model.Heads != model.Hidden:
		has = "heads of another size than hidden_size/num_attention_heads"
	case model.Bias || model.MLPBias:
		has = "biases"
	case model.Window > 0 && model.Window < plan.Workload.Seq:
		has = "a sliding window that is shorter than the sequences"
	case model.Activation != "" && model.Activation != "silu":
		has = "the activation " + model.Activation
	case model.Quantized != nil:
		has = "quantised weights"
	case model.Scaling.Type != "default" && (model.Type != "llama" || !model.llamaScaled()):
		has = "rotary embeddings of the type " + model.Scaling.Type
	}
	if has == "" {
		return nil
	}
	return &refusal{costmodel.Messagef("the plan for %q is of a model with %s, which %s's own layers do not have: plan it with %v", plan.Model.Name, has, program, costmodel.Set("preset", "transformers"))}
}

// tuneOptimizers are torchtune's components of optimizers. Others are a note.
var tuneOptimizers = map[string]string{
	costmodel.AdamW: "torch.optim.AdamW", "adamw-foreach": "torch.optim.AdamW", "adamw-8bit": "bitsandbytes.optim.AdamW8bit", "paged-adamw-8bit": "bitsandbytes.optim.PagedAdamW8bit", costmodel.SGD: "torch.optim.SGD",
}

// Settings that torchtune's recipes do not have.
var (
	tuneLoss = outside{"loss", trained(func(w *costmodel.Workload) string { return w.Loss }, "", "eager", "chunked"), lossOf("").how}

	tuneOptimization = outside{"optimizer", trained(func(w *costmodel.Workload) string {
		if tuneOptimizers[w.Optimizer] != "" {
			return ""
		}
		return w.Optimizer
	}), optimizers}
	tunePacks      = packingBut("torchtune has no such packing: its own is packed (dataset.packed)", "packed")
	tuneKernel     = outside{"attention", kernel.value, map[string]string{"": "torchtune runs scaled_dot_product_attention (torchtune/modules/attention_utils.py)"}}
	tuneEvaluation = evaluationOf("torchtune 0.6.1 evaluates nothing in these recipes")
	tuneAdapters   = outside{"lora_precision", trained(func(w *costmodel.Workload) string {
		if w.LoRARank == 0 || w.Precision == costmodel.FP32True {
			return ""
		}
		return w.LoRAPrecision
	}, "bf16"), map[string]string{"": "torchtune makes adapters in dtype"}}
)

// torchTune is a recipe of torchtune 0.6.1, its last release (recipes/configs). The
// model is written out, so that each size has the same form.
func torchTune(to io.Writer, input *Input) error {
	plan, workload := input.Plan, &input.Plan.Workload
	model, err := decoderOf(input)
	if err == nil {
		err = model.plain(plan, "torchtune", "llama", "qwen2", "mistral")
	}
	if err != nil {
		return err
	}
	for field, value := range map[string]string{"float8": workload.Float8, "liger": given(workload.Liger), "quantize": strings.TrimSuffix(workload.Quantize, "nf4")} {
		if value != "" {
			return &refusal{costmodel.Messagef("the plan for %q has %v, which torchtune does not have: plan it without, or with %v", plan.Model.Name, costmodel.Set(field, value), costmodel.Set("preset", "transformers"))}
		}
	}
	dtype := map[costmodel.Precision]string{costmodel.BF16True: "bf16", costmodel.FP32True: "fp32"}[workload.Precision]
	if dtype == "" {
		return &refusal{costmodel.Messagef("the plan for %q has the precision %s, and a recipe of torchtune has one type for all (dtype: bf16 or fp32): plan it with %v", plan.Model.Name, workload.Precision, costmodel.Set("precision", costmodel.BF16True))}
	}
	optimizer, loss := cmp.Or(tuneOptimizers[workload.Optimizer], tuneOptimizers[costmodel.AdamW]), "torch.nn.CrossEntropyLoss"
	if workload.Loss == "chunked" {
		loss = "torchtune.modules.loss.CEWithChunkedOutputLoss"
	}
	fused := ""
	if optimizer == tuneOptimizers[costmodel.AdamW] {
		fused = strconv.FormatBool(workload.Optimizer != "adamw-foreach")
	}
	attention, mlp, ok := tuneTargets(workload.LoRATargets)
	if workload.LoRARank > 0 && !ok {
		return refused("the plan for %q has adapters on %v: torchtune has them on q_proj, k_proj, v_proj and o_proj, and on all of the MLP or none", plan.Model.Name, workload.LoRATargets)
	}
	family, converted := model.tuneFamily()
	builder := family
	if workload.LoRARank > 0 {
		builder = "lora_" + family
	}
	return form(to, "torchtune.yaml", plan, map[string]any{
		"Work": workload, "Model": &model, "Tokenizer": map[string]string{"llama": "llama3.llama3", "qwen2": "qwen2.qwen2", "mistral": "mistral.mistral"}[model.Type] + "_tokenizer",
		"Packed": workload.Packing == "packed", "Component": family + "." + builder, "Adapters": workload.LoRARank > 0, "Attention": "[" + strings.Join(attention, ", ") + "]", "MLP": mlp,
		"Alpha": 2 * workload.LoRARank, "Quantized": workload.Quantize == "nf4", "Scaled": family == "llama3_1" || family == "llama3_2", "Factor": int64(max(1, model.Scaling.Factor)), "Converted": converted,
		"Batch": perDevice(workload), "Accumulation": max(1, workload.MicroBatches), "Optimizer": optimizer, "Fused": fused, "Loss": loss, "Type": dtype,
		"Recomputes": workload.Recompute == costmodel.RecomputeFull,
	})
}

// tuneFamily is torchtune's builder of a model, and the type that its checkpointer
// converts (training/checkpointing/_utils.py, ModelType).
func (model *decoder) tuneFamily() (builder, converted string) {
	switch {
	case model.Type == "llama" && model.Tied:
		return "llama3_2", "LLAMA3_2"
	case model.Type == "llama" && model.llamaScaled():
		return "llama3_1", "LLAMA3"
	case model.Type == "llama":
		return "llama3", "LLAMA3"
	}
	return model.Type, strings.ToUpper(model.Type)
}

// tuneTargets are the modules with adapters in torchtune's names.
func tuneTargets(targets []string) (attention []string, mlp, ok bool) {
	all := slices.Equal(targets, []string{"all-linear"})
	count := 0
	for _, name := range []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"} {
		if !all && !slices.Contains(targets, name) {
			continue
		}
		count++
		switch name {
		case "gate_proj", "up_proj", "down_proj":
			mlp = true
		case "o_proj":
			attention = append(attention, "output_proj")
		default:
			attention = append(attention, name)
		}
	}
	whole := count - len(attention)
	return attention, mlp, len(attention) > 0 && (whole == 0 || whole == 3) && (all || count == len(targets))
}
