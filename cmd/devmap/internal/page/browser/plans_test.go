package browser

import (
	"strings"
	"testing"
)

// plans has a plan of each strategy and engine.
var plans = map[string]string{
	"device map, accelerate":      "gpt2 --gpus 2 --gpu rtx-4090 --mode train --batch 4",
	"device map, devmap":          "gpt2 --gpus 2 --gpu rtx-4090 --mode train --batch 4 --runtime devmap",
	"device map, inference":       "llama-3.1-8b --gpus 2 --gpu rtx-4090 --new-tokens 64",
	"device map, does not fit":    "llama-3.1-70b --gpus 2 --gpu rtx-4090",
	"device map, offload":         "llama-3.1-8b --gpus 1 --gpu rtx-4090 --offload cpu --reserve 12GiB",
	"weights alone":               "llama-3.1-8b --gpus 2 --gpu rtx-4090 --mode load",
	"pipeline, torch":             "llama-3.2-1b --gpus 2 --mode train --batch 8 --micro-batches 4 --strategy pipeline",
	"pipeline, interleaved":       "llama-3.2-1b --gpus 2 --mode train --batch 8 --micro-batches 4 --strategy pipeline --schedule interleaved",
	"pipeline, torchtitan":        "llama-3.1-8b --gpus 4 --mode train --batch 8 --micro-batches 4 --strategy pipeline --runtime torchtitan",
	"pipeline, megatron":          "llama-3.2-1b --gpus 2 --mode train --batch 8 --micro-batches 4 --strategy pipeline --runtime megatron",
	"pipeline, devmap":            "llama-3.2-1b --gpus 2 --mode train --batch 8 --micro-batches 4 --strategy pipeline --runtime devmap",
	"pipeline, activations away":  "llama-3.2-1b --gpus 2 --gpu h200-141gb --mode train --batch 8 --micro-batches 4 --strategy pipeline --runtime devmap --offload-activations full",
	"pipeline, degrees":           "llama-3.1-8b --gpus 8 --mode train --batch 8 --micro-batches 4 --strategy pipeline --dp auto --tp auto",
	"ddp, torch":                  "llama-3.2-1b --gpus 2 --mode train --batch 2 --strategy ddp",
	"ddp, lightning":              "llama-3.2-1b --gpus 2 --mode train --batch 2 --strategy ddp --runtime lightning",
	"zero1":                       "llama-3.2-1b --gpus 2 --mode train --batch 2 --strategy zero1",
	"zero2":                       "llama-3.2-1b --gpus 2 --mode train --batch 2 --strategy zero2",
	"zero3":                       "llama-3.2-1b --gpus 2 --mode train --batch 2 --strategy zero3",
	"fsdp, torch":                 "llama-3.2-1b --gpus 4 --mode train --batch 2 --strategy fsdp",
	"fsdp, jax":                   "pi0-lora --gpus 2 --gpu h200-141gb --mode train --batch 16 --strategy fsdp --runtime jax",
	"hsdp":                        "llama-3.2-1b --gpus 4 --mode train --batch 2 --strategy hsdp --shard-degree 2",
	"vllm":                        "llama-3.1-8b --gpus 2 --mode serve --runtime vllm",
	"sglang":                      "llama-3.1-8b --gpus 2 --mode serve --runtime sglang",
	"llama.cpp":                   "fixtures/gguf/tiny.gguf --gpus 2 --gpu rtx-3090",
	"diffusion, generation":       "sdxl --gpus 1 --gpu rtx-4090",
	"diffusion, several GPUs":     "flux.1-dev --gpus 2 --gpu h100-80gb",
	"diffusion, training of LoRA": "flux.1-dev --gpus 1 --gpu h100-80gb --mode train --preset diffusers-dreambooth-lora",
}

// pictures counts what a page has to show, and what it shows.
const pictures = `(() => {
	const charts = document.querySelectorAll('.plot').length;
	const empty = [...document.querySelectorAll('.plot')].filter((plot) => !plot.querySelector('canvas')).length;
	const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
	const blank = [...document.querySelectorAll('section')].filter((node) => node.childElementCount < 2).map((node) => node.id).join();
	const words = document.getElementById('main').textContent.match(/undefined|NaN|\[object|null|Infinity/);
	const bars = document.querySelectorAll('#gpus .bar').length;
	const tables = document.querySelectorAll('table, details.table').length;
	return {charts, empty, wide, blank, word: words ? words[0] : '', bars, tables, gpus: alike(data.gpus, () => 0).length};
})()`

type shown struct {
	Charts, Empty, Wide, Bars, Tables, GPUs int
	Blank, Word                             string
}

func TestEveryPlan(t *testing.T) {
	for name, arguments := range plans {
		t.Run(name, func(t *testing.T) {
			page := open(t, report(t, strings.Fields(arguments)...))
			page.renderAll()
			checkPictures(t, value[shown](page, pictures))
			checkSums(t, page)
			page.clean()
		})
	}
}

func checkPictures(t *testing.T, got shown) {
	t.Helper()
	if got.Empty != 0 || got.Blank != "" {
		t.Errorf("%d of %d charts have no drawing, and these sections nothing: %q", got.Empty, got.Charts, got.Blank)
	}
	if got.Bars < got.GPUs || got.Tables < 2 {
		t.Errorf("%d bars for %d kinds of GPUs, %d tables", got.Bars, got.GPUs, got.Tables)
	}
	if got.Wide > 0 {
		t.Errorf("the page is %d points wider than the window", got.Wide)
	}
	if got.Word != "" {
		t.Errorf("the page says %q", got.Word)
	}
}

// checkSums clicks on each peak: the bytes of the listed buffers are the printed peak.
func checkSums(t *testing.T, page *view) {
	t.Helper()
	type list struct {
		Peak, Sum string
		Rows      []float64
	}
	lists := value[[]list](page, `[...document.querySelectorAll('#memory figure')].filter((figure) => figure.querySelector('button.peak')).map((figure) => {
		figure.querySelector('button.peak').click();
		const last = (row) => row.lastElementChild.textContent;
		return {Peak: figure.querySelector('.peak-bytes').textContent, Sum: last(figure.querySelector('.live tfoot tr')),
			Rows: [...figure.querySelectorAll('.live tbody tr')].map((row) => Number(last(row)))};
	})`)
	for i, list := range lists {
		total := 0.0
		for _, bytes := range list.Rows {
			total += bytes
		}
		if whole := decimal(total); list.Peak != whole || list.Sum != whole || total == 0 {
			t.Errorf("picture %d: %d buffers have %s bytes, the sum says %s, the peak %s", i, len(list.Rows), whole, list.Sum, list.Peak)
		}
	}
	if curves := value[int](page, `listOf(data.memory).length`); len(lists) != curves {
		t.Errorf("%d of %d pictures have a peak", len(lists), curves)
	}
}
