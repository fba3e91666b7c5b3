package devicemap_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// document is a plan as decoded JSON, for edits as people make them in files.
type document map[string]any

func documentOf(tb testing.TB, plan *devicemap.Plan) document {
	tb.Helper()
	var b bytes.Buffer
	if err := devicemap.WriteJSON(&b, plan); err != nil {
		tb.Fatal(err)
	}
	return parsed(tb, b.Bytes())
}

func parsed(tb testing.TB, text []byte) document {
	tb.Helper()
	var out document
	if err := json.Unmarshal(text, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// set changes the value at a path such as stages/0/units.
func (edited document) set(path string, value any) {
	var at any = map[string]any(edited)
	parts := strings.Split(path, "/")
	for _, part := range parts[:len(parts)-1] {
		switch inner := at.(type) {
		case map[string]any:
			at = inner[part]
		case []any:
			at = inner[part[0]-'0']
		}
	}
	switch inner := at.(type) {
	case map[string]any:
		if inner[parts[len(parts)-1]] = value; value == nil {
			delete(inner, parts[len(parts)-1])
		}
	case []any:
		inner[parts[len(parts)-1][0]-'0'] = value
	}
}

// with changes fields of the plan's workload.
func (edited document) with(fields map[string]any) {
	for name, value := range fields {
		edited.set("workload/"+name, value)
	}
}

type edit struct {
	path  string
	value any
	want  string // part of the error; empty if the plan is read
}

// refuses makes each edit to a new plan, and reads the plan as every command does.
func refuses(t *testing.T, fresh func() document, edits []edit) {
	t.Helper()
	for _, edit := range append([]edit{{"", nil, ""}}, edits...) {
		edited := fresh()
		if edit.path != "" {
			edited.set(edit.path, edit.value)
		}
		text := fixtures.Must(json.Marshal(edited))(t)
		_, parseErr := devicemap.ReadPlan("plan.json", text)
		_, _, faults, mapErr := devicemap.ParseMap("plan.json", text)
		for _, err := range []error{parseErr, mapErr} {
			if edit.want == "" && err != nil || edit.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "plan.json: "+edit.want)) {
				t.Errorf("%s = %v: error %v, want %q", edit.path, edit.value, err, edit.want)
			}
		}
		if len(faults) > 0 {
			t.Errorf("%s = %v: a plan leaves faults to its reader: %v", edit.path, edit.value, faults)
		}
	}
}

// TestPlanFaults: a plan that contradicts itself is refused with its file and field.
func TestPlanFaults(t *testing.T) {
	fresh := func() document { return documentOf(t, planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 0})) }
	written := planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 0})
	first, second := written.Stages[0].Units[0], written.Stages[1].Units[0]
	refuses(t, fresh, []edit{
		{"stages/0/device", 1, `stages[1].device: device 1 is that of stage 0 too`},
		{"stages/0/device", 7, `stages[0].device: device 7 is not among the 2 devices`},
		{"stages/1/stage", 0, `stages[1].stage: 0 is not 1, its place`},
		{"stages/1/units", []any{first}, `stages[1].units[0]: "` + first + `" is in stage 0 too`},
		{"stages/1/units", []any{}, `stages[1].units: empty`},
		{"stages/1/units", []any{second}, `device_map.`},
		{"device_map/" + second, 0, `stages[1].units[0]: "` + second + `" is on device 1 here, and device_map has it on device 0`},
		{"device_map/" + second, 5, `device_map."` + second + `": device 5 is not among the 2 devices`},
		{"device_map/" + second, "gpu", `device_map: device-not-a-number`},
		{"device_map/more", 1, `device_map."more": it is on device 1, and no stage there has it`},
		{"workload/strategy", "pipeline", `workload.runtime: "accelerate" does not run strategy "pipeline" (torch, torchtitan, megatron, devmap)`},
		{"workload/runtime", "torch", `workload.runtime: "torch" does not run strategy "device-map" (accelerate, devmap)`},
		{"workload/schedule", "1f1b", `workload.schedule: "1f1b" is of strategy "pipeline"`},
		{"step_seconds", -1, `step_seconds: -1 is less than 0`},
		{"verdict", "no", `verdict: "no", and the worst of "devices" is "fits"`},
		{"verdict", "perhaps", `verdict: "perhaps", and the worst of "devices" is "fits"`},
		{"verdict", 1, `verdict`},
		{"verdict", nil, ""},
		{"devices/1/verdict", "tight", `devices[1].verdict: "tight", and with a headroom of `},
		{"devices/1/verdict", nil, ""},
		{"imbalance", 55, `imbalance: 55, and the largest peak`},
		{"objective/value", -1, `objective.value: -1 is less than 0`},
		{"objective/lower_bound", 0.7, `objective.lower_bound: 0.7 is above objective.value, 0.6`},
		{"objective/lower_bound", -0.7, `objective.lower_bound: -0.7 is less than 0`},
		{"objective/value", 0.5, `objective.value: 0.5, and the largest share`},
		{"objective/gap", 0.25, `objective.gap: 0.25, and `},
		{"objective/status", "optimal", `objective.status: "optimal", and the gap is`},
		{"model/params", -1, `model.params: -1 is not between 0`},
		{"offload", map[string]any{"bytes": 1, "from_disk_bytes": 2, "lower_bound_bytes": 0}, `offload.from_disk_bytes: 2 is not between 0 and 1`},
		{"topology/devices/0/capacity_bytes", 5, `devices[0].capacity_bytes: `},
		{"devices/1/predicted/slack_bytes", []any{2, 1}, `devices[1].predicted.slack_bytes: [2 1]`},
		{"devices/1/predicted/peak_range_bytes", []any{2, 1}, `devices[1].predicted.peak_range_bytes: [2 1]`},
		{"format_version", nil, `format_version: missing, and "workload" is a plan's`},
		{"stages", nil, ""},
	})
}

// TestShardDegreeFault: the GPUs that shards divide must be in the plan.
func TestShardDegreeFault(t *testing.T) {
	refuses(t, func() document {
		made := documentOf(t, planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 0}))
		delete(made, "stages")
		delete(made, "device_map")
		made.with(map[string]any{"strategy": "fsdp", "runtime": "torch", "shard_degree": 2})
		return made
	}, []edit{
		{"workload/shard_degree", 3, `workload.shard_degree: 3 does not divide the plan's 2 GPUs`},
		{"workload/recompute", "auto", `workload.recompute: it is chosen for each stage of a pipeline`},
		{"workload/shard_degree", 1, ""},
	})
}

// TestStagesOfPlanV: only the two stages at the turn of a V may follow each other on a device.
func TestStagesOfPlanV(t *testing.T) {
	refuses(t, func() document {
		made := documentOf(t, planOf(t, devicemap.Map{0, 1, 1, 1, 1, 0, 0}))
		made.with(map[string]any{"strategy": "pipeline", "runtime": "torch", "schedule": "zbv"})
		return made
	}, []edit{
		{"stages/1/device", 0, `stages[1].device: device 0 is that of stage 0 too`},
	})
}

// TestOrderOfPlan: an own order of passes has the rows, chunks and micro-batches of the plan's stages.
func TestOrderOfPlan(t *testing.T) {
	refuses(t, func() document {
		made := documentOf(t, planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 1}))
		made.with(map[string]any{"strategy": "pipeline", "runtime": "devmap", "batch": 2, "micro_batches": 2, "schedule": "order:FFBB/FB*2"})
		return made
	}, []edit{
		{"workload/schedule", "order:FB*2", `workload.schedule: the order has rows of 1 GPUs, and the pipeline has 2`},
		{"workload/schedule", "order:FB*2/FB*2/FB*2", `workload.schedule: the order has rows of 3 GPUs, and the pipeline has 2`},
		{"workload/schedule", "order:FFBB/FB*3", `workload.schedule: row 1 of the order`},
	})
}

// TestStagesOfModules: stages and maps agree for any grouping of modules in the map.
func TestStagesOfModules(t *testing.T) {
	fresh := func(flat map[string]any, units ...[]any) func() document {
		return func() document {
			made := documentOf(t, planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 0}))
			made["device_map"] = flat
			stages := []any{}
			for i, names := range units {
				stages = append(stages, map[string]any{"stage": i, "device": i, "units": names})
			}
			made["stages"] = stages
			return made
		}
	}
	// Modules around units, modules inside units, units of modules with other names, and names that
	// are prefixes of others.
	refuses(t, fresh(map[string]any{"model": 0, "head": 1}, []any{"model.a", "model.b"}, []any{"head"}), []edit{{"device_map/model", 1, `stages[0].units[0]: "model.a" is on device 0 here, and device_map has it on device 1`}})
	refuses(t, fresh(map[string]any{"a.x": 0, "a.y": 0, "b": 1}, []any{"a"}, []any{"b"}), []edit{{"device_map/a.y", 1, `device_map."a.y": it is on device 1`}})
	refuses(t, fresh(map[string]any{"p": 0, "q": 0, "b": 1}, []any{"joined"}, []any{"b"}), []edit{{"stages/1/units", []any{"b", "c"}, `stages[1].units[1]: device_map has no module "c" on device 1`}})
	refuses(t, fresh(map[string]any{"encoder.a": 0, "encoder.b": 1}, []any{"encoder"}, []any{"second"}), nil)
}

// TestDiffusionPlanFaults: the section of a diffusion pipeline may have only values that its
// readers take.
func TestDiffusionPlanFaults(t *testing.T) {
	text := fixtures.Must(os.ReadFile(filepath.Join("..", "emit", "testdata", "plans", "pipefusion.json")))(t)
	refuses(t, func() document { return parsed(t, text) }, []edit{
		{"pipeline/offload", "zzz", `pipeline.offload: "zzz" is unknown (known: model, sequential, group)`},
		{"pipeline/class", "x; import os", `pipeline.class: "x; import os" is no class of Python`},
		{"pipeline/class", "class", `pipeline.class: "class" is no class of Python`},
		{"pipeline/height", -1, `pipeline.height: -1 is not between 1 and 1048576`},
		{"pipeline/steps", nil, `pipeline.steps: 0 is not between 1 and 1048576`},
		{"pipeline/ring", -2, `pipeline.ring: -2 is not between 0 and 1048576`},
		{"pipeline/ring", 2, `pipeline: cfg_degree × ulysses × ring × pipefusion × replicas is 8, and the topology has 4 devices`},
		{"pipeline/fully_shard_degree", 8, `pipeline.fully_shard_degree: 8 is more than the topology's 4 devices`},
		{"pipeline/attn_layer_num_for_pp", []any{15, 15}, `pipeline.attn_layer_num_for_pp: [15 15] is no number of blocks`},
		{"pipeline/ofload", "model", `pipeline.ofload`},
		{"pipeline/height", "tall", `pipeline.height`},
		{"pipeline", nil, `pipeline: missing`},
		{"device_map", map[string]any{}, `device_map: the phases of a diffusion pipeline have none`},
		{"devices/0/predicted/peak_allocated_bytes", 7, `devices[0].predicted.peak_allocated_bytes: 7, and the parts add up to 0`},
		{"step_seconds", -0.5, `step_seconds: -0.5 is less than 0`},
		{"format_version", nil, `format_version: missing`},
	})
}
