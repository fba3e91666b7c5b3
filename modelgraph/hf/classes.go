package hf

import (
	"slices"
	"strings"
)

// causalClasses are the classes that Transformers makes for a decoder named name
// (modeling_layers.py: GenericFor…).
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

// answeringPath is where a question answering class holds its decoder: some keep the name
// "transformer" for old checkpoints (base_model_prefix of LlamaForQuestionAnswering and its
// siblings).
func answeringPath(class string) string {
	old := []string{"Llama", "Qwen2", "Qwen3", "Qwen3Moe", "Qwen3Next", "DeciLM", "Exaone4", "Nemotron", "SeedOss", "SmolLM3", "Ministral", "Arcee"}
	if slices.Contains(old, strings.TrimSuffix(class, "For"+questionAnswering)) {
		return "transformer"
	}
	return "model"
}
