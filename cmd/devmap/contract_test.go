package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// These types are the documents that README promises to users' scripts. They are written from that
// page and not from the code.
type (
	contractPlan struct {
		FormatVersion string                     `json:"format_version"`
		Model         contractModel              `json:"model"`
		Workload      json.RawMessage            `json:"workload"`
		Topology      json.RawMessage            `json:"topology"`
		DeviceMap     map[string]json.RawMessage `json:"device_map"`
		Stages        []contractStage            `json:"stages"`
		UnitKinds     map[string][]string        `json:"unit_kinds,omitempty"`
		Devices       []contractDevice           `json:"devices"`
		Objective     contractObjective          `json:"objective"`
		Verdict       string                     `json:"verdict"`
		Imbalance     float64                    `json:"imbalance"`
		StepSeconds   *float64                   `json:"step_seconds"`
		Warnings      []string                   `json:"warnings"`
	}
	contractModel struct {
		Name      string `json:"name"`
		Source    string `json:"source"`
		Digest    string `json:"digest"`
		AutoClass string `json:"auto_class,omitzero"`
		Params    int64  `json:"params"`
		Buffers   int64  `json:"buffers"`
	}
	contractStage struct {
		Stage  int      `json:"stage"`
		Device int      `json:"device"`
		Units  []string `json:"units"`
		contractTimes
	}
	// contractTimes lists the times that add up to a step (TestStagesAddUp).
	contractTimes struct {
		Forward       float64 `json:"forward_seconds"`
		Backward      float64 `json:"backward_seconds"`
		Send          float64 `json:"send_seconds"`
		SendBack      float64 `json:"send_back_seconds"`
		IssueForward  float64 `json:"issue_forward_seconds"`
		IssueBackward float64 `json:"issue_backward_seconds"`
		AloneForward  float64 `json:"alone_forward_seconds"`
		AloneBackward float64 `json:"alone_backward_seconds"`
		Token         float64 `json:"token_seconds,omitempty"` // for generation
		IssueToken    float64 `json:"issue_token_seconds,omitempty"`
		AloneToken    float64 `json:"alone_token_seconds,omitempty"`
		Update        float64 `json:"update_seconds"`
	}
	contractDevice struct {
		Device        int               `json:"device"`
		CapacityBytes int64             `json:"capacity_bytes"`
		ReservedBytes int64             `json:"reserved_bytes"`
		Predicted     contractPredicted `json:"predicted"`
		HeadroomBytes int64             `json:"headroom_bytes"`
		Verdict       string            `json:"verdict"`
	}
	contractPredicted struct {
		ParamsBytes         int64   `json:"params_bytes"`
		GradsBytes          int64   `json:"grads_bytes"`
		OptimizerStateBytes int64   `json:"optimizer_state_bytes"`
		ActivationsBytes    int64   `json:"activations_bytes"`
		KVCacheBytes        int64   `json:"kv_cache_bytes"`
		WorkspaceBytes      int64   `json:"workspace_bytes"`
		CommBuffersBytes    int64   `json:"comm_buffers_bytes"`
		PeakAllocatedBytes  int64   `json:"peak_allocated_bytes"`
		OverheadBytes       int64   `json:"overhead_bytes"`
		SlackBytes          []int64 `json:"slack_bytes"`
		DeviceUsedBytes     int64   `json:"device_used_bytes"`
		PeakAt              string  `json:"peak_at"`
		PeakRangeBytes      []int64 `json:"peak_range_bytes,omitempty"` // if it is not one figure
		UsualPeakBytes      int64   `json:"usual_peak_bytes,omitempty"` // if samples differ
		AtLeast             bool    `json:"at_least,omitempty"`         // a lower bound
	}
	contractObjective struct {
		Name       string  `json:"name"`
		Value      float64 `json:"value"`
		LowerBound float64 `json:"lower_bound"`
		Gap        float64 `json:"gap"`
		Status     string  `json:"status"`
		Bound      string  `json:"bound"`
	}
	contractCheck struct {
		FormatVersion string `json:"format_version"`

		Devices   []contractDevice `json:"devices"`
		Verdict   string           `json:"verdict"`
		Imbalance float64          `json:"imbalance"`
		Faults    []contractFault  `json:"faults"`
		Warnings  []string         `json:"warnings"`
	}
	contractFault struct {
		Kind    string `json:"kind"`
		Module  string `json:"module"`
		Message string `json:"message"`
		Nearest string `json:"nearest"`
	}
	contractInspect struct {
		FormatVersion string         `json:"format_version"`
		Model         contractModel  `json:"model"`
		Units         []contractUnit `json:"units"`
		Warnings      []string       `json:"warnings"`
	}
	contractUnit struct {
		Name            string   `json:"name"`
		Params          int64    `json:"params"`
		ParamsBytes     int64    `json:"params_bytes"`
		FLOPs           float64  `json:"flops"`
		ActivationBytes int64    `json:"activation_bytes"`
		Inputs          []string `json:"inputs"`
	}
)

// devmap runs a command line in this process, checks its status and returns its stdout.
func devmap(t *testing.T, wantStatus int, args ...string) (stdout []byte) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(t.Context(), args, &out, &errs); got != wantStatus {
		t.Fatalf("devmap %s: exit status %d, not %d\n%s", strings.Join(args, " "), got, wantStatus, &errs)
	}
	return out.Bytes()
}

// decode expects exactly the fields of v: an unknown field fails the decoding, a missing one the
// comparison with the encoded v.
func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	again := fixtures.Must(json.Marshal(v))(t)
	if got, want := generic(t, data), generic(t, again); !reflect.DeepEqual(got, want) {
		t.Fatalf("the document lacks fields of the contract: %v\nthe contract: %v", got, want)
	}
}

func generic(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

var contractCases = map[string][]string{
	"native":            {toyModel, "--gpus", "2"},
	"load":              {"llama-3.1-8b", "--gpus", "8", "--mode", "load"},
	"load, ties":        {"llama-3.2-1b", "--gpus", "8", "--mode", "load"},
	"infer":             {"gpt2", "--gpus", "2"},
	"generate":          {"mistral-7b-v0.1", "--gpus", "3", "--new-tokens", "100"},
	"train":             {"qwen2.5-3b", "--gpus", "4", "--gpu", "h200-141gb", "--mode", "train", "--batch", "4"},
	"micro-batches":     {"gpt2", "--gpus", "2", "--mode", "train", "--batch", "4", "--micro-batches", "2"},
	"recompute":         {"gemma-2b", "--gpus", "4", "--mode", "train", "--recompute", "full", "--optimizer", "adamw-8bit"},
	"buffers":           {"deepseek-v3", "--gpus", "1TiB,1TiB,1TiB,1TiB", "--mode", "load"},
	"encoder–decoder":   {"t5-11b", "--gpus", "3", "--target-seq", "64"},
	"vision":            {"qwen2.5-vl-3b", "--gpus", "4"},
	"audio":             {"whisper-large-v3", "--gpus", "2", "--mode", "train"},
	"encoder":           {"bert-large", "--gpus", "2", "--mode", "train"},
	"state space":       {"mamba-2.8b", "--gpus", "2"},
	"unequal, reserved": {"llama-3.1-8b", "--gpus", "16GiB,8GiB,24GiB", "--reserve", "1GiB", "--seq", "512"},
	"idle":              {"gpt2", "--gpus", "64"},
	"stopped early":     {"qwen2.5-3b", "--gpus", "4", "--time-limit", "1ns"},
}

const toyModel = "testdata/toy.json"

func TestPlanContract(t *testing.T) {
	for name, args := range contractCases {
		t.Run(name, func(t *testing.T) {
			g := fixtures.Must(ask.ReadModel(args[0]))(t)
			data := devmap(t, out.ExitDone, append([]string{"plan", "--json"}, args...)...)
			var p contractPlan
			decode(t, data, &p)
			if p.FormatVersion != "devmap.plan/v1" || p.Objective.Name != "memory" || p.Warnings == nil {
				t.Errorf("format %q, objective %q, warnings %v", p.FormatVersion, p.Objective.Name, p.Warnings)
			}
			checkModel(t, &p.Model, args[0])
			checkDevices(t, p.Devices)
			checkObjective(t, &p)
			checkCover(t, g, p.DeviceMap)
			checkStages(t, g, &p)
			load := strings.Contains(strings.Join(args, " "), "--mode load")
			switch {
			case load != (p.StepSeconds == nil):
				t.Errorf("step_seconds %v", p.StepSeconds)
			case !load && (*p.StepSeconds < 0 || math.IsNaN(*p.StepSeconds)):
				t.Errorf("step_seconds %v", *p.StepSeconds)
			}
			checkAgain(t, args[0], data, &p)
		})
	}
}

// checkDevices compares the figures of every device with the contract's sums.
func checkDevices(t *testing.T, ds []contractDevice) {
	t.Helper()
	for i := range ds {
		d, p := &ds[i], &ds[i].Predicted
		sum := p.ParamsBytes + p.GradsBytes + p.OptimizerStateBytes + p.ActivationsBytes + p.KVCacheBytes + p.WorkspaceBytes + p.CommBuffersBytes
		if d.Device != i || sum != p.PeakAllocatedBytes {
			t.Errorf("devices[%d]: device %d, the categories add up to %d, the peak is %d", i, d.Device, sum, p.PeakAllocatedBytes)
		}
		if budget := d.CapacityBytes - d.ReservedBytes; d.HeadroomBytes != budget-p.PeakAllocatedBytes-p.OverheadBytes {
			t.Errorf("devices[%d]: headroom %d of a budget of %d, %+v", i, d.HeadroomBytes, budget, *p)
		}
		if len(p.SlackBytes) != 2 || p.SlackBytes[0] < 0 || p.SlackBytes[1] < p.SlackBytes[0] {
			t.Fatalf("devices[%d]: slack %v", i, p.SlackBytes)
		}
		if want := p.PeakAllocatedBytes + p.OverheadBytes + (p.SlackBytes[0]+p.SlackBytes[1])/2; p.DeviceUsedBytes != want {
			t.Errorf("devices[%d]: device_used %d, not %d", i, p.DeviceUsedBytes, want)
		}
		if r := p.PeakRangeBytes; len(r) > 0 && (len(r) != 2 || r[0] > p.PeakAllocatedBytes || r[1] < p.PeakAllocatedBytes) {
			t.Errorf("devices[%d]: a peak of %d in the range %v", i, p.PeakAllocatedBytes, r)
		}
		if (p.PeakAt == "") != (p.PeakAllocatedBytes == 0) {
			t.Errorf("devices[%d]: peak at %q of %d bytes", i, p.PeakAt, p.PeakAllocatedBytes)
		}
	}
}

func checkObjective(t *testing.T, p *contractPlan) {
	t.Helper()
	var largest, most, sum float64
	for i := range p.Devices {
		d := &p.Devices[i]
		peak := float64(d.Predicted.PeakAllocatedBytes)
		largest = max(largest, (peak+float64(d.Predicted.OverheadBytes))/float64(d.CapacityBytes-d.ReservedBytes))
		most, sum = max(most, peak), sum+peak
	}
	checkVerdicts(t, p.Devices, p.Verdict)
	o := &p.Objective
	if !near(o.Value, largest) || o.Value > 1 {
		t.Errorf("objective %v, the largest share is %v", o.Value, largest)
	}
	if o.LowerBound > o.Value || !near(o.Gap, (o.Value-o.LowerBound)/o.Value) {
		t.Errorf("bound %v, value %v, gap %v", o.LowerBound, o.Value, o.Gap)
	}
	switch o.Status {
	case "optimal":
		if o.Gap != 0 {
			t.Errorf("optimal with a gap of %v", o.Gap)
		}
	case "feasible", "limit reached":
	default:
		t.Errorf("status %q", o.Status)
	}
	if want := most * float64(len(p.Devices)) / sum; !near(p.Imbalance, want) {
		t.Errorf("imbalance %v, max / mean is %v", p.Imbalance, want)
	}
	if o.Bound == "" {
		t.Error("no bound is named")
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(1, math.Abs(b)) }

// checkCover checks that the keys are disjoint, and that every parameter and buffer is below
// exactly one of them.
func checkCover(t *testing.T, g *modelgraph.Graph, m map[string]json.RawMessage) {
	t.Helper()
	used := map[string]bool{}
	for i := range g.Layers {
		l := &g.Layers[i]
		names := []string{l.Name}
		for _, tensors := range [][]modelgraph.Tensor{l.Params, l.Buffers} {
			for j := range tensors {
				names = append(names, l.Name+"."+tensors[j].Name)
			}
		}
		for j, name := range names {
			var above []string
			for at := name; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
				if _, ok := m[at]; ok {
					above = append(above, at)
					used[at] = true
				}
			}
			if len(above) > 1 || len(above) == 0 && (j > 0 || len(names) == 1) {
				t.Errorf("%q is below the keys %q", name, above)
			}
		}
	}
	for key, device := range m {
		if !used[key] {
			t.Errorf("the key %q covers nothing", key)
		}
		if _, err := strconv.ParseUint(string(device), 10, 16); err != nil {
			t.Errorf("%q: the device %s is no integer", key, device)
		}
	}
}

// checkStages checks that the stages together list the units in module order, on the map's devices.
func checkStages(t *testing.T, g *modelgraph.Graph, p *contractPlan) {
	t.Helper()
	var units []string
	for i, s := range p.Stages {
		if s.Stage != i || i > 0 && s.Device == p.Stages[i-1].Device || s.Device < 0 || s.Device >= len(p.Devices) {
			t.Errorf("stages[%d]: stage %d on device %d", i, s.Stage, s.Device)
		}
		for _, u := range s.Units {
			for key, device := range p.DeviceMap {
				if (key == u || strings.HasPrefix(key, u+".")) && string(device) != strconv.Itoa(s.Device) {
					t.Errorf("%q is in a stage on device %d, %q on %s", u, s.Device, key, device)
				}
			}
		}
		units = append(units, s.Units...)
	}
	var want []string
	kinds := map[string][]string{}
	for u := range g.Units {
		want = append(want, g.Units[u].Name)
		if kind := g.Units[u].Kind; kind != "" {
			kinds[kind] = append(kinds[kind], g.Units[u].Name)
		}
	}
	if !reflect.DeepEqual(units, want) || !maps.EqualFunc(p.UnitKinds, kinds, slices.Equal) {
		t.Errorf("the stages hold %q, of kinds %q, the model %q of %q", units, p.UnitKinds, want, kinds)
	}
}

// checkAgain checks that devmap check finds no fault in the plan or in its map alone, and predicts
// the same devices.
func checkAgain(t *testing.T, model string, plan []byte, p *contractPlan) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(file, plan, 0o600); err != nil {
		t.Fatal(err)
	}
	var c contractCheck
	decode(t, devmap(t, out.ExitDone, "check", model, file, "--json"), &c)
	if !reflect.DeepEqual(c.Devices, p.Devices) || c.Imbalance != p.Imbalance || c.Faults == nil || len(c.Faults) > 0 {
		t.Errorf("check says\n%+v\nthe plan\n%+v", c, p.Devices)
	}
	var emitted map[string]json.RawMessage
	decode(t, devmap(t, out.ExitDone, "emit", file, "--for", "accelerate"), &emitted)
	if !reflect.DeepEqual(emitted, p.DeviceMap) {
		t.Errorf("emit writes %s", emitted)
	}
}

func TestCheckContract(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map.json")
	text := `{"model.embed_tokens": 9, "model.layers": 1, "model.layers.3.mlp": 0, "model.norm": "0", "model.nrm": 0, "lm_head": 1}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var c contractCheck
	decode(t, devmap(t, out.ExitCheck, "check", "llama-3.1-8b", file, "--json", "--gpus", "8GiB,8GiB"), &c)
	checkDevices(t, c.Devices)
	kinds := map[string]contractFault{}
	for _, f := range c.Faults {
		if f.Module == "" || f.Message == "" {
			t.Errorf("%+v", f)
		}
		kinds[f.Kind] = f
	}
	for _, want := range []string{"unknown-module", "split-unit", "device-not-a-number", "unknown-device", "overlap", "does-not-fit"} {
		if _, ok := kinds[want]; !ok {
			t.Errorf("no fault of kind %s in %+v", want, c.Faults)
		}
	}
	if f := kinds["unknown-module"]; f.Module != "model.nrm" || f.Nearest != "model.norm" {
		t.Errorf("%+v", f)
	}
}

func TestInspectContract(t *testing.T) {
	for name, args := range contractCases {
		if strings.Contains(strings.Join(args, " "), "--time-limit") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			g := fixtures.Must(ask.ReadModel(args[0]))(t)
			var doc contractInspect
			decode(t, devmap(t, out.ExitDone, "inspect", "--json", args[0]), &doc)
			if doc.FormatVersion != "devmap.inspect/v1" || len(doc.Units) != len(g.Units) || doc.Warnings == nil {
				t.Fatalf("format %q, %d units of %d, warnings %q", doc.FormatVersion, len(doc.Units), len(g.Units), doc.Warnings)
			}
			checkModel(t, &doc.Model, args[0])
			known := map[string]bool{}
			var params int64
			for i, u := range doc.Units {
				if u.Name != g.Units[i].Name || u.Params < 0 || u.ParamsBytes < 0 || u.FLOPs < 0 || u.ActivationBytes < 0 || u.Inputs == nil {
					t.Errorf("units[%d]: %+v", i, u)
				}
				known[u.Name] = true
				params += u.Params
			}
			for _, u := range doc.Units {
				for _, in := range u.Inputs {
					if !known[in] {
						t.Errorf("%q reads %q, which is no unit", u.Name, in)
					}
				}
			}
			if params != doc.Model.Params {
				t.Errorf("the units have %d parameters, the model %d", params, doc.Model.Params)
			}
		})
	}
}
