package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
)

// TestEmitExamples: the help of emit has an example for every engine, and each runs
// with a plan for that engine and writes what it says.
func TestEmitExamples(t *testing.T) {
	t.Parallel()
	plans := map[string]string{
		"accelerate":     "gpt2 --gpus 2 --mode load",
		"ms-swift":       "gpt2 --gpus 2 --mode load",
		"torch-schedule": "llama-3.2-1b --gpus 2 --mode train --strategy pipeline --batch 2 --micro-batches 2",
		"deepspeed":      "llama-3.2-1b --gpus 2 --mode train --strategy zero2",
		"openpi":         "pi0-lora --gpus 2 --gpu h200-141gb --mode train --batch 16",
		"diffusers":      "flux --gpus 1",
		"xdit":           "flux --gpus 2",
		"program":        "llama-3.2-1b --gpus 2 --mode train",
		"torch-check":    "llama-3.2-1b --gpus 2 --mode train",
	}
	seen := map[string]bool{}
	for line := range strings.Lines(newEmit().Example) {
		example, _, _ := strings.Cut(strings.TrimSpace(line), " && ")
		words := strings.Fields(example)
		if len(words) != 7 || words[0] != "devmap" || words[3] != "--for" || words[5] != "-o" {
			t.Errorf("%q is not devmap emit PLAN --for ENGINE -o FILE", example)
			continue
		}
		engine, folder := words[4], t.TempDir()
		seen[engine] = true
		write(t, filepath.Join(folder, "flux", "model_index.json"), `{"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]}`)
		write(t, filepath.Join(folder, "flux", "transformer", "config.json"), `{"_class_name": "FluxTransformer2DModel", "guidance_embeds": true}`)
		for _, command := range []string{"devmap plan " + plans[engine] + " -o plan.json", example} {
			run := exec.CommandContext(t.Context(), "sh", "-c", command)
			run.Dir = folder
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", command, err, out)
			}
		}
		if written, err := os.ReadFile(filepath.Join(folder, words[6])); err != nil || len(written) == 0 {
			t.Errorf("%s: %d bytes, %v", example, len(written), err)
		}
	}
	for _, engine := range ask.Targets() {
		if !seen[engine] {
			t.Errorf("no example for %s", engine)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
