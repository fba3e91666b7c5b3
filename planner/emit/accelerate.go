package emit

import (
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// Accelerate reads device_map: dispatch_model, and device_map= of Transformers'
// from_pretrained.
var accelerate = register(&Target{
	Name: "accelerate", Aliases: []string{"huggingface", "hf"}, File: "device_map.json",
	Example: "gpt2 --gpus 2 --mode load", Golden: []string{"device-map"},
	needs: []need{deviceMap}, Write: flatMap, Usage: fromPretrained,
})

// flatMap writes the plan's map alone: module path → number, "cpu" or "disk".
func flatMap(to io.Writer, input *Input) error {
	return devicemap.WriteJSON(to, input.Plan.DeviceMap)
}

// fromPretrained is the call that loads a model under the map, as the plan
// counts it (transformers/modeling_utils.py, from_pretrained).
func fromPretrained(input *Input, file string) (usage, note string) {
	plan, workload := input.Plan, &input.Plan.Workload
	args := []string{"MODEL", "device_map=json.load(open(" + quote.Python(file) + "))", "dtype=" + loaded(workload)}
	if a := attention(workload); a != "" {
		args = append(args, "attn_implementation="+quote.Python(a))
	}
	switch workload.Quantize {
	case "nf4":
		args = append(args, `quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)`)
	case "int8":
		args = append(args, "quantization_config=BitsAndBytesConfig(load_in_8bit=True)")
	}
	if offloads(plan) {
		args = append(args, `offload_folder="offload"`)
	}
	class := "AutoModelForCausalLM"
	if plan.Model.AutoClass != "" {
		class = plan.Model.AutoClass
	}
	if strings.HasPrefix(plan.Model.AutoClass, "Auto") { // which loads the code in the repository
		args = append(args, "trust_remote_code=True")
	}
	return class + ".from_pretrained(" + strings.Join(args, ", ") + ")", otherBytes(plan, "Accelerate")
}

// loaded is the type that weights are loaded in: autocast's are fp32, but for a
// frozen base that keeps its stored type.
func loaded(workload *costmodel.Workload) string {
	switch {
	case workload.StoredTypes || workload.Precision == "" || baseAsStored(workload):
		return `"auto"`
	case workload.Precision == costmodel.BF16True:
		return "torch.bfloat16"
	case workload.Precision == costmodel.FP16True:
		return "torch.float16"
	}
	return "torch.float32"
}

// storedBases are the training programs under which a frozen base keeps its stored
// type in mixed precision (frozen_as_stored in costmodel/internal/trainer/paths.json).
var storedBases = []string{"transformers", "transformers:fsdp1", "transformers:fsdp1-prefetch", "ms-swift", "llamafactory", "axolotl", "axolotl:peft"}

func baseAsStored(workload *costmodel.Workload) bool {
	mixed := workload.Precision == costmodel.BF16Mixed || workload.Precision == costmodel.FP16Mixed
	return mixed && workload.Mode == costmodel.Train && workload.LoRARank > 0 && workload.Quantize == "" && slices.Contains(storedBases, workload.Preset)
}

// attention is Transformers' name of a kernel that is not its default.
func attention(workload *costmodel.Workload) string {
	return map[string]string{"eager": "eager", "flash": "flash_attention_2"}[workload.Attention]
}
