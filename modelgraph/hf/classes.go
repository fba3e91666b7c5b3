package hf

import (
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
