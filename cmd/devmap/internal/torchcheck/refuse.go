package torchcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// config is what says of a model which code of Transformers it is.
type config struct {
	ModelType     string          `json:"model_type"`
	Architectures []string        `json:"architectures"`
	Quantization  json.RawMessage `json:"quantization_config"`
}

// elsewhere are model types of which Transformers (5.17) has no code: their
// repositories bring it.
var elsewhere = []string{"baichuan", "internlm2", "internlm3", "internvl_chat", "minicpm", "nemotron-nas", "xverse"}

// staged are the families that a pipeline's stages are made of: whose blocks take
// one rotation and no mask, between model.embed_tokens and lm_head.
var staged = []string{"llama", "mistral", "qwen2", "qwen3", "phi3", "gemma", "gemma2"}

// refuse names what the program could not run as the plan counts it.
func refuse(plan *devicemap.Plan, text []byte) error {
	var model config
	if err := json.Unmarshal(text, &model); err != nil {
		return fmt.Errorf("the config of %q: %w", plan.Model.Name, err)
	}
	for _, reason := range []string{model.unbuildable(), engineless(plan), unfit(&plan.Workload), displaced(plan, model.ModelType)} {
		if reason != "" {
			return fmt.Errorf("the plan for %q: %s", plan.Model.Name, reason)
		}
	}
	return nil
}

// unbuildable says why Transformers does not build the model from its config.
func (model *config) unbuildable() string {
	class := ""
	if len(model.Architectures) > 0 {
		class = model.Architectures[0]
	}
	causal := class == "" || strings.HasSuffix(class, "ForCausalLM") || strings.HasSuffix(class, "LMHeadModel")
	switch {
	case model.ModelType == "":
		return "its config.json names no model_type: only Transformers' models are built"
	case slices.Contains(elsewhere, model.ModelType):
		return fmt.Sprintf("Transformers has no model_type %q: its repository brings the code", model.ModelType)
	case !causal:
		return fmt.Sprintf("%s is no causal language model: only token ids are made up", class)
	case len(model.Quantization) > 0 && string(model.Quantization) != "null":
		return "its weights are stored quantised, which no random values are: plan the unquantised model"
	}
	return ""
}

// engineless says of an engine that it is not one that the program has.
func engineless(plan *devicemap.Plan) string {
	switch runtime := plan.Workload.Runtime; runtime {
	case "accelerate", "torch":
		return ""
	case costmodel.Devmap:
		return "its engine is devmap's own, which devmap run measures: torch-check has torch and accelerate"
	default:
		return fmt.Sprintf("its engine is %s: torch-check has torch and accelerate", runtime)
	}
}

// unfit says what of the workload the program does not do.
func unfit(workload *costmodel.Workload) string {
	switch {
	case workload.Images > 0:
		return "it has images: only token ids are made up"
	case workload.Quantize != "":
		return fmt.Sprintf("quantize %s needs bitsandbytes' own loading of a checkpoint", workload.Quantize)
	case workload.Recompute == "selective":
		return "which operations are recomputed is the trainer's own choice: recompute none or full"
	case workload.Loss != "" && workload.Loss != "eager":
		return fmt.Sprintf("loss %s is the trainer's own: Transformers' is eager", workload.Loss)
	case workload.EMA:
		return "the moving average is the trainer's own"
	case workload.Optimizer == "adafactor" || workload.Optimizer == "muon":
		return fmt.Sprintf("optimizer %s is the trainer's own: torch-check has adamw, adamw-foreach, adamw-8bit, sgd and sgd-momentum", workload.Optimizer)
	}
	return unspread(workload)
}

// unspread says what of the way in which the model is spread the program does
// not do.
func unspread(workload *costmodel.Workload) string {
	traits := workload.Strategy.Traits()
	switch {
	case traits.Replicated && (workload.Mode != costmodel.Train || workload.MicroBatches > 1):
		return fmt.Sprintf("under %s torch-check trains, without accumulating gradients", workload.Strategy)
	case workload.DP != 0 || workload.TP != 0 || workload.Recompute == "auto":
		return "stages of several GPUs, and of forms of their own, are not in torch-check: plan with --dp 1 --tp 1 and one --recompute"
	case traits.Staged && (workload.Mode != costmodel.Train || workload.LoRARank > 0):
		return "of a pipeline torch-check trains all weights"
	}
	return ""
}

// displaced says which modules are not where the program can put them, or that nothing
// is known of where they are.
func displaced(plan *devicemap.Plan, family string) string {
	if len(plan.Devices) == 0 {
		return "it predicts nothing, its devices are an empty list: devmap plan writes one that does"
	}
	for _, entry := range plan.DeviceMap {
		if entry.Device < 0 {
			return fmt.Sprintf("%s is on %v: torch-check keeps all on GPUs", entry.Key, entry.Device)
		}
	}
	if plan.Workload.Strategy.Traits().Staged && !slices.Contains(staged, family) {
		return fmt.Sprintf("stages of a %s are not made: those of %s are", family, strings.Join(staged, ", "))
	}
	return ""
}
