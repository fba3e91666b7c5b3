package estimate

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// allLinear is PEFT's shorthand for every linear layer but the output head.
const allLinear = "all-linear"

// maxRank keeps sizes far from overflow.
const maxRank = 1 << 16

// targeted is PEFT's rule (peft/tuners/tuners_utils.py,
// check_target_module_exists): a target names the module, or its end behind a
// dot.
func targeted(targets []string, n linear) bool {
	for _, t := range targets {
		if strings.EqualFold(t, allLinear) && !n.head || n.module == t || strings.HasSuffix(n.module, "."+t) {
			return true
		}
	}
	return false
}

// loraDefaults are PEFT's targets where none are given
// (peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING).
var loraDefaults = map[string]string{
	"t5": "q,v", "gpt2": "c_attn", "bloom": "query_key_value", "falcon": "query_key_value", "bert": "query,value",
	"opt": "q_proj,v_proj", "bart": "q_proj,v_proj", "llama": "q_proj,v_proj", "mistral": "q_proj,v_proj",
	"mixtral": "q_proj,v_proj", "gemma": "q_proj,v_proj", "gemma2": "q_proj,v_proj", "gemma3_text": "q_proj,v_proj",
	"qwen2": "q_proj,v_proj", "qwen3": "q_proj,v_proj", "phi": "q_proj,v_proj,fc1,fc2",
}

// checkFrozen refuses adapters and quantised weights that cannot be trained,
// and targets that are not in the model.
func checkFrozen(g *modelgraph.Graph, w *costmodel.Workload) error {
	switch {
	case w.LoRARank < 0 || w.LoRARank > maxRank:
		return &costmodel.FieldError{Field: "lora_rank", Msg: costmodel.Messagef("%d is not between 0 (none) and %d", w.LoRARank, maxRank)}
	case w.LoRARank == 0 && len(w.LoRATargets) > 0:
		return &costmodel.FieldError{Field: "lora_targets", Msg: costmodel.Messagef("%s need a rank: add %v", strings.Join(w.LoRATargets, ","), costmodel.Set("lora_rank", "16"))}
	case w.LoRARank > 0 && len(w.LoRATargets) == 0:
		if d, ok := loraDefaults[g.Family]; ok {
			return &costmodel.FieldError{Field: "lora_targets", Msg: costmodel.Messagef("no modules are named; PEFT's default for %s is %v", g.Family, costmodel.Set("lora_targets", d))}
		}
		return &costmodel.FieldError{Field: "lora_targets", Msg: costmodel.Messagef("no modules are named; this model has %s, and %s means all of them", suffixes(g, ""), allLinear)}
	case w.Quantize != "" && w.Mode == costmodel.Train && w.LoRARank == 0:
		return &costmodel.FieldError{Field: "quantize", Msg: costmodel.Messagef("%s weights take no gradients, so the model cannot be trained in full: add %v %v, or leave %v out", w.Quantize, costmodel.Set("lora_rank", "16"), costmodel.Set("lora_targets", allLinear), costmodel.Setting{Field: "quantize"})}
	}
	if err := checkAdapterType(w); err != nil {
		return err
	}
	return checkTargets(g, w.LoRATargets)
}

// checkTargets refuses a target that no linear layer is.
func checkTargets(g *modelgraph.Graph, targets []string) error {
	all := linears(g)
	for _, t := range targets {
		found := false
		for _, n := range all {
			found = found || targeted([]string{t}, n)
		}
		if !found {
			return &costmodel.FieldError{Field: "lora_targets", Msg: costmodel.Messagef("%q ends no linear layer's name; nearest: %s", t, suffixes(g, t))}
		}
	}
	return nil
}

// suffixes are the last parts of linear layers' names, those nearest to a
// word first.
func suffixes(g *modelgraph.Graph, word string) string {
	var names []string
	for _, n := range linears(g) {
		names = append(names, n.module[strings.LastIndexByte(n.module, '.')+1:])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "none (it has no linear layers)"
	}
	word = word[strings.LastIndexByte(word, '.')+1:]
	slices.SortStableFunc(names, func(a, b string) int {
		return levenshtein.ComputeDistance(a, word) - levenshtein.ComputeDistance(b, word)
	})
	return strings.Join(names[:min(len(names), 8)], ", ")
}

// checkAdapterType refuses a type of adapters that the engine does not keep.
func checkAdapterType(w *costmodel.Workload) error {
	switch {
	case w.LoRARank == 0 && w.LoRAPrecision != "":
		return &costmodel.FieldError{Field: "lora_precision", Msg: costmodel.Messagef("%s is the type of adapters, which need a rank: add %v", w.LoRAPrecision, costmodel.Set("lora_rank", "16"))}
	case w.Runtime == costmodel.DeepSpeed && w.LoRARank > 0 && w.LoRAPrecision != adaptersAs(gathered(w.Precision)):
		return &costmodel.FieldError{Field: "lora_precision", Msg: costmodel.Messagef("DeepSpeed casts the whole module: under %v its adapters are %s, not %s", costmodel.Set("precision", w.Precision), adaptersAs(gathered(w.Precision)), w.LoRAPrecision)}
	}
	return nil
}
