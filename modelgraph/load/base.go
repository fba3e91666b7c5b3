package load

import (
	"io/fs"
	"slices"
	"strings"
)

// endings are what publishers put after the name of a base model: what it was
// tuned for, and how its weights are packed.
var endings = []string{
	"instruct", "chat", "it", "base", "hf", "pt", "sft", "dpo", "rlhf", "distill", "reasoning", "thinking", "preview", "mix", "224", "448", "896",
	"awq", "gptq", "gptq-int4", "gptq-int8", "int4", "int8", "fp8", "bnb-4bit", "4bit", "8bit", "gguf", "w8a8", "mlx",
	"v0.1", "v0.2", "v0.3", "v1", "v2", "2407", "2410", "2501", "2503", "2507",
}

// makers are words in front that only say whose model it is.
var makers = []string{"meta-"}

// baseOf is the built-in config whose name is left of a name without its
// endings; empty if none is, and where nothing had to go.
func baseOf(name string, fsys fs.FS) string {
	rest := strings.ToLower(lastPart(name))
	for _, maker := range makers {
		rest = strings.TrimPrefix(rest, maker)
	}
	for {
		for entry := range builtInFiles(fsys) {
			if strings.EqualFold(lastPart(entry), rest) {
				return entry
			}
		}
		cut := strings.LastIndexByte(rest, '-')
		if cut < 0 {
			return ""
		}
		if !slices.Contains(endings, rest[cut+1:]) {
			return ""
		}
		rest = rest[:cut]
	}
}
