package browser

import (
	"os"
	"path/filepath"
	"testing"
)

// small is a model whose steps take no time on a CPU.
const small = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 128,
	"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 256, "max_position_embeddings": 64, "torch_dtype": "bfloat16"}`

// smi is an nvidia-smi with one GPU whose used memory rises and falls.
const smi = `#!/bin/sh
case "$*" in
*--query-gpu=index,uuid*) echo '0, GPU-000, NVIDIA H200, 143771, 0, Disabled, 580.1' ;;
*--query-compute-apps*) ;;
*) while :; do for used in 0 1000 21000 29000 29500 12000; do echo "0, $used" || exit; sleep 0.05; done; done ;;
esac
`

func write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// The page of a run compares predicted with measured memory and has the steps.
func TestRun(t *testing.T) {
	folder, work := filepath.Dir(write(t, "config.json", small, 0o644)), t.TempDir()
	plan, measured, html := filepath.Join(work, "plan.json"), filepath.Join(work, "measured.json"), filepath.Join(work, "report.html")
	devmap(t, "plan", folder, "--gpus", "2", "--gpu", "rtx-4090", "--mode", "train", "--batch", "4", "--micro-batches", "2", "--seq", "16", "--strategy", "pipeline", "--runtime", "devmap", "-o", plan)
	devmap(t, "run", plan, "--weights", "random", "--steps", "3", "-o", measured)
	devmap(t, "report", plan, "--run", measured, "-o", html)
	page := open(t, html)
	page.renderAll()
	checkPictures(t, value[shown](page, pictures))
	checkSums(t, page)
	if bars := value[int](page, `document.querySelectorAll('#gpus .measured .bar').length`); bars < 2 {
		t.Errorf("%d bars of measured memory for 2 GPUs", bars)
	}
	if steps := value[int](page, `data.run.step_seconds.length`); steps != 3 {
		t.Errorf("the page has %d steps of 3", steps)
	}
	page.clean()
}

// The page of watch has its readings over time.
func TestWatch(t *testing.T) {
	program := write(t, "nvidia-smi", smi, 0o755)
	t.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	work := t.TempDir()
	plan, html := filepath.Join(work, "plan.json"), filepath.Join(work, "report.html")
	devmap(t, "plan", "llama-3.2-1b", "--gpus", "1", "--gpu", "h200-141gb", "--mode", "train", "--preset", "accelerate-loop", "--batch", "4", "--seq", "2048", "-o", plan)
	devmap(t, "watch", plan, "--report", html, "--", "sleep", "2")
	page := open(t, html)
	page.renderAll()
	checkPictures(t, value[shown](page, pictures))
	if readings := value[int](page, `data.watch.gpus[0].x.length`); readings < 2 {
		t.Errorf("the page has %d readings", readings)
	}
	if charts := value[int](page, `document.querySelectorAll('#watch canvas').length`); charts != 1 {
		t.Errorf("%d charts of readings for 1 GPU", charts)
	}
	page.clean()
}
