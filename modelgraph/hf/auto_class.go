package hf

import (
	"maps"
	"slices"
	"strings"
)

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
