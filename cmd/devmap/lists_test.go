package main

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/devmap-dev/devmap/fixtures"
)

// TestListModels: every built-in model is listed with its size, in a table of 100 columns. The size
// agrees with the plan of a pipeline and with the hub's page.
func TestListModels(t *testing.T) {
	var document struct {
		FormatVersion string `json:"format_version"`
		Models        []struct {
			Name, Type string
			Pipeline   bool
			Params     int64
			HubIDs     []string `json:"hub_ids"`
		}
	}
	list(t, "models", &document)
	entries, err := fs.ReadDir(fixtures.Models(), ".")
	if err != nil {
		t.Fatal(err)
	}
	if document.FormatVersion != "devmap.models/v1" || len(document.Models) != len(entries)-1 { // all but hub.json
		t.Errorf("%s of %d models, want %d", document.FormatVersion, len(document.Models), len(entries)-1)
	}
	// These count the parts of the checkpoints; quantized weights count as their number.
	sizes := map[string]int64{
		"llama-3.1-8b": 8030261248, "gpt-oss-20b": 20914757184, "flux.1-dev": 16870599139, "sd-1.5": 1066235307, "sdxl": 3468837867, "sd-3.5-large": 13721068003,
		"cogvideox-5b": 10548177635, "hunyuanvideo": 20695738643, "qwen-image": 28849460275, "wan2.1-t2v-14b": 20096294451, "wan2.1-i2v-14b-480p": 22833447731,
	}
	for _, model := range document.Models {
		if model.Type == "" || model.Params < 1e8 || model.HubIDs == nil {
			t.Errorf("incomplete: %+v", model)
		}
		if model.Pipeline != strings.HasSuffix(model.Type, "Pipeline") {
			t.Errorf("%s is a %s", model.Name, model.Type)
		}
		if want, known := sizes[model.Name]; known && model.Params != want {
			t.Errorf("%s has %d parameters, want %d", model.Name, model.Params, want)
		}
	}
}

// TestListGPUs: every GPU is listed with its source.
func TestListGPUs(t *testing.T) {
	var document struct {
		FormatVersion string `json:"format_version"`
		GPUs          []struct {
			Name, Source string
			Usable       int64    `json:"usable_bytes"`
			BF16         *float64 `json:"bf16_flops"`
			FP16         *float64 `json:"fp16_flops"`
		}
	}
	list(t, "gpus", &document)
	if document.FormatVersion != "devmap.gpus/v1" || len(document.GPUs) < 33 {
		t.Errorf("%s of %d GPUs", document.FormatVersion, len(document.GPUs))
	}
	for _, gpu := range document.GPUs {
		if gpu.Usable < 8<<30 || gpu.Source == "" || gpu.BF16 != nil && gpu.FP16 != nil {
			t.Errorf("%+v", gpu)
		}
		if unpublished := gpu.BF16 == nil && gpu.FP16 == nil; gpu.Name == "h20-96gb" && !unpublished || gpu.Name == "rtx-5090" && unpublished {
			t.Errorf("%s: rates %v and %v", gpu.Name, gpu.BF16, gpu.FP16)
		}
	}
}

// list reads a list's JSON, and checks that its table fits into 100 columns.
func list(t *testing.T, name string, document any) {
	t.Helper()
	if err := json.Unmarshal(devmap(t, 0, name, "--json"), document); err != nil {
		t.Fatal(err)
	}
	table := string(devmap(t, 0, name))
	for _, line := range strings.Split(table, "\n") {
		if utf8.RuneCountInString(line) > 100 {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	if strings.Count(table, "\n") < 30 {
		t.Errorf("the table is %s", table)
	}
}
