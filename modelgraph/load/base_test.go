package load

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestBaseOf: a tuned or packed form names its base, and nothing else does.
func TestBaseOf(t *testing.T) {
	fsys := fstest.MapFS{"qwen2.5-3b/config.json": {Data: []byte(llama)}, "llama-3.1-8b.json": {Data: []byte(llama)}, "Org/gemma-2-9b.json": {Data: []byte(llama)}}
	for name, want := range map[string]string{
		"Qwen/Qwen2.5-3B-Instruct":              "qwen2.5-3b",
		"Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4":    "qwen2.5-3b",
		"meta-llama/Meta-Llama-3.1-8B-Instruct": "llama-3.1-8b",
		"other/gemma-2-9b-it":                   "Org/gemma-2-9b",
		"Qwen/Qwen2.5-3B-VL":                    "",
		"Qwen/Qwen2.5-7B-Instruct":              "",
		"instruct":                              "",
	} {
		if got := baseOf(name, fsys); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		_, err := Model(name, Options{BuiltIn: fsys, Env: func(string) string { return "" }})
		if err == nil || strings.Contains(err.Error(), "did you mean "+want+", whose config is built in") != (want != "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
