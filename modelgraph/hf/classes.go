package hf

import (
	"maps"
	"slices"
	"strings"
)

// causalClasses are a decoder's classes in Transformers (modeling_layers.py: GenericFor…).
func causalClasses(name string, tasks ...string) []string {
	cs := []string{name + "ForCausalLM", name + "Model"}
	for _, task := range tasks {
		cs = append(cs, name+"For"+task)
	}
	return cs
}

// The generic task classes of a decoder.
const (
	sequenceClassification = "SequenceClassification"
	tokenClassification    = "TokenClassification"
	questionAnswering      = "QuestionAnswering"
)

// baseClass reports whether class is the model without a head.
func baseClass(class string) bool {
	return strings.HasSuffix(class, "Model") && !strings.Contains(class, "LMHead")
}

func isTask(class, task string) bool { return strings.HasSuffix(class, "For"+task) }

// answeringPath is the decoder's path in a question answering class. Some keep "transformer" for
// old checkpoints (base_model_prefix, such as of LlamaForQuestionAnswering).
func answeringPath(class string) string {
	old := []string{"Llama", "Qwen2", "Qwen3", "Qwen3Moe", "Qwen3Next", "DeciLM", "Exaone4", "Nemotron", "SeedOss", "SmolLM3", "Ministral", "Arcee"}
	if slices.Contains(old, strings.TrimSuffix(class, "For"+questionAnswering)) {
		return "transformer"
	}
	return "model"
}

// remoteTypes are types with code in checkpoints, not in Transformers 5.17 (trust_remote_code).
var remoteTypes = []string{
	"baichuan", "chatglm", "deepseek", "exaone", "internlm", "internlm2", "internlm3", "internvl_chat",
	"mimo", "minicpm", "nemotron-nas", "phi4mm", "xverse",
}

// autoClass is the Auto class that loads such code for a class: auto_map's, else the usual one.
// Empty if Transformers has the type.
func autoClass(cfg *config, kind, class string, foreign bool) string {
	remote := slices.Contains(remoteTypes, kind)
	if foreign {
		remote = configClassOf(cfg.name("model_type")) == nil
	}
	if !remote {
		return ""
	}
	auto := cfg.sub("auto_map")
	for _, name := range slices.Sorted(maps.Keys(auto.members)) {
		if value := auto.members[name]; strings.HasPrefix(name, "AutoModel") && value.Kind() == '"' && strings.HasSuffix(auto.name(name), "."+class) {
			return name
		}
	}
	for _, task := range []string{"CausalLM", sequenceClassification, tokenClassification, questionAnswering} {
		if isTask(class, task) {
			return "AutoModelFor" + task
		}
	}
	return "AutoModel"
}
