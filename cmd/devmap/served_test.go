package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

const tinyModel, tinyEncoder = "../../fixtures/gguf/tiny.gguf", "../../fixtures/gguf/tiny-mmproj.gguf"

// servedPlan is what the tests read of a plan.
type servedPlan struct {
	Workload struct {
		Context int64
		InTurn  bool `json:"in_turn"`
	}
	Devices   []json.RawMessage
	Verdict   string
	DeviceMap map[string]any `json:"device_map"`
	Faults    []struct{ Kind, Module, Message string }
	Error     string
	Remedies  []struct {
		Flags, Without []string
		Fits           bool
	}
}

// fields reads some fields of a document.
func fields(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
}

// TestServedCheck: check predicts for a plan what plan predicted, byte for byte, and names what llama.cpp
// does not do.
func TestServedCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.json")
	inTurn := false
	for _, flags := range []string{
		"--gpus 2", "--gpus 3 --gpu rtx-3090 --context 5000 --sequences 3", "--gpus 2GiB,1800MiB --kv-type q8_0", "--gpus 1 --context 4096 --ubatch 64", "--gpus 1700MiB --context 131072",
		"--gpus 2 --context 8192 --draft " + tinyModel, "--gpus 2 --mmproj " + tinyEncoder + " --draft " + tinyModel, "--gpus 1700MiB,1700MiB --kv-type f16",
	} {
		var plan, check servedPlan
		devmap(t, out.ExitDone, append([]string{"plan", tinyModel, "--json", "--force", "-o", file}, strings.Fields(flags)...)...)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fields(t, data, &plan)
		inTurn = inTurn || plan.Workload.InTurn
		fields(t, devmap(t, out.ExitDone, "check", tinyModel, file, "--json"), &check)
		if !slices.EqualFunc(plan.Devices, check.Devices, func(one, other json.RawMessage) bool { return string(one) == string(other) }) {
			t.Errorf("%s: check has %s, plan %s", flags, check.Devices, plan.Devices)
		}
	}
	if !inTurn {
		t.Error("no plan has GPUs that work in turn")
	}
	for name, test := range map[string]struct{ placed, kind, module string }{
		"order":   {`{"token_embd": "cpu", "blk.0": 0, "blk.1": 1, "blk.2": 0, "blk.3": 1, "output_norm": 1, "output": 1}`, "not-placed", "blk.2"},
		"inputs":  {`{"": 0}`, "not-placed", "token_embd"},
		"output":  {`{"token_embd": "cpu", "blk.0": 0, "blk.1": 0, "blk.2": 0, "blk.3": 0, "output_norm": 0, "output": 1}`, "not-placed", "output"},
		"unknown": {`{"token_embd": "cpu", "blk.0": 0, "blk.1": 0, "blk.2": 0, "blk.4": 0, "output_norm": 0, "output": 0}`, "unknown-module", "blk.4"},
		"disk":    {`{"token_embd": "cpu", "blk.0": "disk", "blk.1": 0, "blk.2": 0, "blk.3": 0, "output_norm": 0, "output": 0}`, "not-placed", "blk.0"},
	} {
		write(t, file, test.placed)
		var check servedPlan
		fields(t, devmap(t, out.ExitCheck, "check", tinyModel, file, "--gpus", "2", "--context", "4096", "--json"), &check)
		if check.Verdict != "invalid" || len(check.Faults) == 0 || check.Faults[0].Kind != test.kind || check.Faults[0].Module != test.module {
			t.Errorf("%s: %+v", name, check)
		}
	}
	write(t, file, `{"token_embd": "cpu", "blk.0": 0, "blk.1": 0, "blk.2": 0, "blk.3": 0, "output_norm": 0, "output": 0}`)
	var check servedPlan
	fields(t, devmap(t, out.ExitCheck, "check", tinyModel, file, "--gpus", "1700MiB", "--context", "131072", "--json"), &check)
	if check.Verdict != "no" || check.Faults[0].Kind != "does-not-fit" {
		t.Errorf("%+v", check)
	}
	devmap(t, out.ExitUsage, "check", tinyModel, file, "--gpus", "2") // the context is missing
}

// TestServedEstimate: the split is llama.cpp's own, or that of the flags. Each change that is offered for one
// that does not fit is a plan that fits.
func TestServedEstimate(t *testing.T) {
	type estimated struct {
		Given struct {
			Fits      bool
			DeviceMap map[string]any `json:"device_map"`
			Peaks     []int64        `json:"peak_allocated_bytes"`
		}
		servedPlan
	}
	on := func(flags string, status int) (document estimated) {
		fields(t, devmap(t, status, append([]string{"estimate", tinyModel, "--json"}, strings.Fields(flags)...)...), &document)
		return document
	}
	for flags, want := range map[string]string{
		"--gpus 2 --context 4096":                                         "0 0 0 1 1", // llama.cpp: the place of a unit below the cumulated part
		"--gpus 2 --context 4096 --tensor-split 1,3":                      "0 0 1 1 1",
		"--gpus 2 --context 4096 --tensor-split 1,0":                      "0 0 0 0 0",
		"--gpus 2 --context 4096 --gpu-layers 2":                          "cpu cpu cpu 0 1",
		"--gpus 24GiB,8GiB --context 4096":                                "0 0 0 0 1",
		"--gpus 2 --context 4096 --tensor-split 1,1 --draft " + tinyModel: "0 0 0 1 1",
	} {
		document := on(flags, out.ExitDone)
		var got []string
		for _, unit := range []string{"blk.0", "blk.1", "blk.2", "blk.3", "output"} {
			device, _ := json.Marshal(document.Given.DeviceMap[unit])
			got = append(got, strings.Trim(string(device), `"`))
		}
		if strings.Join(got, " ") != want || !document.Given.Fits {
			t.Errorf("%s: %s, want %s", flags, got, want)
		}
	}
	for _, flags := range []string{"--gpus 2 --context 4096", "--gpus 2 --context 4096 --tensor-split 1,1"} {
		alone, drafted := on(flags, out.ExitDone), on(flags+" --draft "+tinyModel, out.ExitDone)
		for i := range alone.Given.Peaks { // the draft is split as the model
			if drafted.Given.Peaks[i] < alone.Given.Peaks[i]+alone.Given.Peaks[i]/2 {
				t.Errorf("%s: GPU %d: %d bytes, and with a draft %d", flags, i, alone.Given.Peaks[i], drafted.Given.Peaks[i])
			}
		}
	}
	remedies := 0
	for _, flags := range []string{"--gpus 1700MiB --context 131072 --gpu-layers 99 --sequences 2", "--gpus 1600MiB,1600MiB --context 131072 --tensor-split 1,1", "--gpus 1600MiB --tensor-split 1 --draft " + tinyModel} {
		document := on(flags, out.ExitInfeasible)
		if document.Given.Fits || document.Error == "" || len(document.Remedies) < 2 {
			t.Errorf("%s: %+v", flags, document)
		}
		for _, remedy := range document.Remedies {
			words := strings.Fields(flags)
			for _, name := range slices.Concat([]string{"--gpu-layers", "--tensor-split"}, remedy.Without, remedy.Flags) {
				if at := slices.Index(words, name); at >= 0 {
					words = slices.Delete(words, at, at+2)
				}
			}
			devmap(t, out.ExitDone, slices.Concat([]string{"plan", tinyModel, "--json"}, words, remedy.Flags)...)
			remedies++
		}
	}
	if remedies < 10 {
		t.Errorf("%d changes", remedies)
	}
	for _, flags := range []string{"--tensor-split 1", "--tensor-split 1,x", "--tensor-split 0,0", "--tensor-split 1,Inf", "--gpu-layers 0", "--batch 2", "--mode train"} {
		devmap(t, out.ExitUsage, append([]string{"estimate", tinyModel, "--gpus", "2"}, strings.Fields(flags)...)...)
	}
	devmap(t, out.ExitUsage, "estimate", "qwen2.5-0.5b", "--gpus", "2", "--context", "4096")
}

// TestServedInspect: types and bytes of units, and the cache of a token.
func TestServedInspect(t *testing.T) {
	for kind, want := range map[string]int64{"f16": 1024, "q8_0": 544} {
		var document inspectOutput
		fields(t, devmap(t, out.ExitDone, "inspect", tinyModel, "--json", "--kv-type", kind), &document)
		block := document.Units[1]
		if block.Name != "blk.0" || block.KVBytesPerToken != want || !slices.Equal(block.Types, []string{"F32", "Q4_K", "Q6_K"}) || block.ParamsBytes != 293888 {
			t.Errorf("%s: %+v", kind, block)
		}
	}
	if text := string(devmap(t, out.ExitDone, "inspect", tinyModel)); !strings.Contains(text, "KV cache in f16: 4.0 KiB a token; trained for 131,072 tokens") {
		t.Error(text)
	}
}

// TestServedModels: files of other models are read, and what llama.cpp does not take is refused.
func TestServedModels(t *testing.T) {
	devmap(t, out.ExitError, "plan", tinyModel, "--gpus", "1", "--mmproj", tinyModel)
	devmap(t, out.ExitError, "plan", tinyModel, "--gpus", "1", "--draft", tinyEncoder)
	devmap(t, out.ExitUsage, "plan", tinyModel, "--gpus", "1", "--draft", "toy.json")
}
