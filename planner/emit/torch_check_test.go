package emit_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

const llama = `{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 500}`

// planned is a plan of a strategy over two GPUs, changed.
func planned(strategy costmodel.Strategy, change func(*devicemap.Plan)) *devicemap.Plan {
	plan := &devicemap.Plan{
		Workload: costmodel.Workload{
			Mode: costmodel.Train, Strategy: strategy, Runtime: strategy.Traits().Runtimes[0], Batch: 4, MicroBatches: 1, Seq: 32,
			Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone,
		},
		Topology:  costmodel.Topology{Devices: []costmodel.Device{{Name: "h200-141gb"}, {Name: "h200-141gb"}}},
		Imbalance: 1.004, Warnings: []string{"a \"note\" with \"\"\" and \\ and\nlines"},
	}
	plan.Model.Name = "small"
	for device := range 2 {
		plan.Devices = append(plan.Devices, devicemap.Prediction{Device: device, Predicted: devicemap.Predicted{PeakAllocatedBytes: 7 << 30, SlackBytes: [2]int64{0, 1 << 30}, DeviceUsedBytes: 8 << 30}})
	}
	switch traits := strategy.Traits(); {
	case traits.Staged:
		plan.Workload.Schedule, plan.Workload.MicroBatches = costmodel.OneFOneB, 2
		plan.Stages = []devicemap.Stage{{Device: 0, Units: []string{"model.embed_tokens", "model.layers.0"}}, {Device: 1, Units: []string{"model.layers.1", "model.norm", "lm_head"}}}
	case traits.Sequential:
		plan.DeviceMap = devicemap.Flat{{Key: "model.embed_tokens", Device: 0}, {Key: "model.layers.0", Device: 0}, {Key: "model.layers.1", Device: 1}, {Key: "model.norm", Device: 1}, {Key: "lm_head", Device: 0}}
	}
	if change != nil {
		change(plan)
	}
	return plan
}

// checkOf is the program for a plan of a model with this config.
func checkOf(tb testing.TB, plan *devicemap.Plan, config string) string {
	tb.Helper()
	text, err := written(target(tb, "torch-check"), &emit.Input{Plan: plan, Config: []byte(config)})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// literals are the two raw strings of a program, as Python reads them: to the
// first three quotation marks.
var literals = regexp.MustCompile(`(?s)(\w+) = json\.loads\(r"""(.*?)"""\)`)

// TestLiterals: what is written of the plan reads back as it was, whatever is in it,
// and every strategy has the parts that it needs.
func TestLiterals(t *testing.T) {
	hostile := `{"model_type": "llama", "name": "\"\"\" + exit() + \"\"\" \\ ''' @JOB@ @CONFIG@ \u0000"}`
	for strategy, parts := range map[costmodel.Strategy][]string{
		costmodel.DeviceMap: {"dispatch_model("}, costmodel.Pipeline: {"PipelineStage(", "fake"}, costmodel.FSDP: {"fully_shard(", "fake"}, costmodel.DDP: {"DistributedDataParallel("},
	} {
		plan := planned(strategy, func(plan *devicemap.Plan) { plan.Model.Name = `a """ b \` })
		text := checkOf(t, plan, hostile)
		found := literals.FindAllStringSubmatch(text, -1)
		if len(found) != 2 || found[0][1] != "JOB" || found[1][1] != "CONFIG" {
			t.Fatalf("%s: literals %q", strategy, found)
		}
		var job struct {
			Model   string
			Map     map[string]int `json:"device_map"`
			Stages  []any
			Devices []struct {
				Range [2]int64 `json:"peak_range_bytes"`
			}
			Notes []string
		}
		var config, want map[string]any
		for at, into := range []any{&job, &config} {
			if err := json.Unmarshal([]byte(found[at][2]), into); err != nil {
				t.Fatalf("%s: %s: %v", strategy, found[at][1], err)
			}
		}
		if err := json.Unmarshal([]byte(hostile), &want); err != nil || config["name"] != want["name"] {
			t.Errorf("%s: the config reads as %q", strategy, config)
		}
		if job.Model != plan.Model.Name || job.Notes[0] != plan.Warnings[0] || len(job.Map) != len(plan.DeviceMap) || len(job.Stages) != len(plan.Stages) || job.Devices[1].Range != [2]int64{7 << 30, 7 << 30} {
			t.Errorf("%s: the plan reads as %+v", strategy, job)
		}
		for _, part := range append(parts, "def main():", "def judged(") {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in it", strategy, part)
			}
		}
	}
}

// TestCheckedBlocks: programs of ranks checkpoint the blocks of the plan's list, and no others.
func TestCheckedBlocks(t *testing.T) {
	function := regexp.MustCompile(`(?s)def recomputed\(number\):\n.*?\n{3}`)
	for recompute, want := range map[string]string{"": "0000", "none": "0000", "full": "1111", "0-1,3": "1101", "2": "0010"} {
		for strategy, wraps := range map[costmodel.Strategy]string{
			costmodel.FSDP: "if recomputed(number):", costmodel.DDP: "if recomputed(number):", costmodel.Pipeline: "if recomputed(number) else",
		} {
			text := checkOf(t, planned(strategy, func(plan *devicemap.Plan) { plan.Workload.Recompute = recompute }), llama)
			if !strings.Contains(text, wraps) {
				t.Errorf("%s: no %q in it", strategy, wraps)
			}
			code := literals.FindString(text) + "\n" + function.FindString(text) + `print("".join(str(int(recomputed(block))) for block in range(4)))`
			got, err := exec.Command("python3", "-c", "import json\n"+code).CombinedOutput()
			if err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s, %q: %s, want %s (%v)", strategy, recompute, got, want, err)
			}
		}
	}
}

// TestRange: a prediction that is a range is judged by its ends.
func TestRange(t *testing.T) {
	text := checkOf(t, planned(costmodel.DDP, func(plan *devicemap.Plan) { plan.Devices[1].Predicted.PeakRangeBytes = []int64{5, 9} }), llama)
	if !strings.Contains(strings.Join(strings.Fields(text), ""), `"peak_range_bytes":[5,9]`) {
		t.Error("the range is not in it")
	}
}

// TestTorchCheckRefuses: what is not built as the plan counts it is named.
func TestTorchCheckRefuses(t *testing.T) {
	with := func(change func(*costmodel.Workload)) func(*devicemap.Plan) {
		return func(plan *devicemap.Plan) { change(&plan.Workload) }
	}
	for _, c := range []struct {
		strategy costmodel.Strategy
		config   string
		change   func(*devicemap.Plan)
		want     string
	}{
		{costmodel.DeviceMap, llama, func(plan *devicemap.Plan) { plan.Devices = nil }, "it predicts nothing"},
		{costmodel.DeviceMap, `{"model_type": "internlm2"}`, nil, `Transformers has no model_type "internlm2"`},
		{costmodel.DeviceMap, `{"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}`, nil, "T5ForConditionalGeneration is no causal language model"},
		{costmodel.DeviceMap, `{}`, nil, "names no model_type"},
		{costmodel.DeviceMap, `{"model_type": "llama", "quantization_config": {"bits": 4}}`, nil, "stored quantised"},
		{costmodel.DeviceMap, `[`, nil, `the config of "small"`},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Runtime = costmodel.Devmap }), "devmap's own, which devmap run measures"},
		{costmodel.Zero2, llama, nil, "its engine is deepspeed"},
		{costmodel.DDP, llama, with(func(w *costmodel.Workload) { w.Runtime = "lightning" }), "its engine is lightning"},
		{costmodel.DDP, llama, with(func(w *costmodel.Workload) { w.Preset = "ms-swift-megatron" }), "has layers or adapters of its own"},
		{costmodel.DDP, llama, with(func(w *costmodel.Workload) { w.Preset, w.LoRARank = "axolotl", 8 }), "has layers or adapters of its own"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Images = 1 }), "it has images"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Quantize = "nf4" }), "quantize nf4"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Recompute = "selective" }), "recompute none or full"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Recompute = "0" }), "all blocks or none"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Loss = "fused" }), "loss fused"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.EMA = true }), "moving average"},
		{costmodel.DeviceMap, llama, with(func(w *costmodel.Workload) { w.Optimizer = "muon" }), "optimizer muon"},
		{costmodel.FSDP, llama, with(func(w *costmodel.Workload) { w.MicroBatches = 2 }), "under fsdp torch-check trains, without accumulating"},
		{costmodel.Pipeline, llama, with(func(w *costmodel.Workload) { w.Mode = costmodel.Infer }), "of a pipeline torch-check trains"},
		{costmodel.Pipeline, `{"model_type": "gpt2"}`, nil, "stages of a gpt2 are not made"},
		{costmodel.DeviceMap, llama, func(plan *devicemap.Plan) { plan.DeviceMap[2].Device = devicemap.CPU }, "model.layers.1 is on cpu"},
	} {
		_, err := written(target(t, "torch-check"), &emit.Input{Plan: planned(c.strategy, c.change), Config: []byte(c.config)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// FuzzTorchCheck: whatever a config and a plan's words are, what is written of them
// stays within its two literals.
func FuzzTorchCheck(f *testing.F) {
	f.Add([]byte(llama), "small", "a note")
	f.Add([]byte(`{"model_type": "llama", "x": "\"\"\"\\"}`), `"""`, `\`)
	f.Add([]byte("{\"model_type\": \"\u2028\", \"x\": [1e9, -0.0, \"\\u0000\"]}"), "@CONFIG@", "\r\n'''")
	plain := strings.Split(checkOf(f, planned(costmodel.DeviceMap, nil), llama), "json.loads(")
	f.Fuzz(func(t *testing.T, config []byte, name, note string) {
		plan := planned(costmodel.DeviceMap, func(plan *devicemap.Plan) { plan.Model.Name, plan.Warnings = name, []string{note} })
		text, err := written(target(t, "torch-check"), &emit.Input{Plan: plan, Config: config})
		if err != nil {
			return
		}
		found := literals.FindAllStringSubmatchIndex(text, -1)
		if len(found) < 2 {
			t.Fatalf("literals %v", found)
		}
		for _, at := range found[:2] {
			if !json.Valid([]byte(text[at[4]:at[5]])) {
				t.Errorf("no JSON: %q", text[at[4]:at[5]])
			}
		}
		_, rest, _ := strings.Cut(plain[2], `""")`)
		if !strings.HasSuffix(text, rest) || text[found[1][1]:] != rest {
			t.Errorf("behind the literals stands %q", text[found[1][1]:])
		}
	})
}
