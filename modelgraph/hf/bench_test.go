package hf

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkFromConfig is config to graph: every parameter's name and shape.
func BenchmarkFromConfig(b *testing.B) {
	for _, model := range []string{
		"llama-3.1-8b", "llama-3.1-405b", "deepseek-v3", "llama-3_1-nemotron-ultra-253b-v1", "qwen2.5-vl-3b",
	} {
		b.Run(model, func(b *testing.B) {
			config, err := os.ReadFile(filepath.Join("..", "..", "fixtures", "models", model, "config.json"))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := FromConfig(model, config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
