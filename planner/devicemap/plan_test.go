package devicemap_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// planOf returns a plan for the small model.
func planOf(tb testing.TB, m devicemap.Map) *devicemap.Plan {
	tb.Helper()
	g := small(tb)
	table, topo := load(tb, g, 1000, 2)
	r := devicemap.Check(g, table, topo, m.Flatten(g), nil)
	var share float64
	for i := range r.Devices {
		device := &r.Devices[i]
		share = max(share, device.Share)
		device.Units, device.Budget, device.Share = 0, 0, 0 // not in the file
	}
	plan := devicemap.NewPlan(g, table, topo, m, r.Devices)
	plan.Objective.Name, plan.Objective.Status, plan.Objective.Bound = "memory", "feasible", "average"
	plan.Objective.Value, plan.Objective.LowerBound, plan.Objective.Gap = share, share/2, .5
	plan.Warnings = []string{"one"}
	return plan
}

func TestPlanRoundTrip(t *testing.T) {
	want := planOf(t, devicemap.Map{0, 0, 0, devicemap.CPU, devicemap.Disk, 1, 0})
	path := filepath.Join(t.TempDir(), "plan.json")
	var b bytes.Buffer
	if err := devicemap.WriteJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := devicemap.ReadPlan(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	for i := range want.Devices { // reading computes them
		device := &want.Devices[i]
		device.Budget = device.CapacityBytes - device.ReservedBytes
		device.Share = float64(device.Predicted.PeakAllocatedBytes+device.Predicted.OverheadBytes) / float64(device.Budget)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
	if !strings.Contains(b.String(), `"step_seconds": null`) || !strings.Contains(b.String(), `"m.h.2": "cpu"`) {
		t.Errorf("the plan is\n%s", b.Bytes())
	}
}

// TestUnitKindsInOrder: the kinds of a plan are sorted, so a plan always gives the same file.
func TestUnitKindsInOrder(t *testing.T) {
	plan := planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 0})
	plan.UnitKinds = map[string][]string{"norm": {"n"}, "head": {"h"}, "tower": {"t"}, "embedding": {"e"}, "decoder-layer": {"d"}}
	var b bytes.Buffer
	if err := devicemap.WriteJSON(&b, plan); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), `"unit_kinds": {`)
	last := 0
	for _, kind := range []string{"decoder-layer", "embedding", "head", "norm", "tower"} {
		at := strings.Index(text, `"`+kind+`": [`)
		if at <= last {
			t.Errorf("%s is at byte %d, after byte %d", kind, at, last)
		}
		last = at
	}
}

// TestTampered: a plan with an edited map is refused, or fails the check.
func TestTampered(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 1000, 2)
	var b bytes.Buffer
	if err := devicemap.WriteJSON(&b, planOf(t, devicemap.Map{0, 0, 0, 1, 1, 1, 0})); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		kind     string // empty: no fault
	}{
		{"", "", ""},
		{`"m.h.3": 1`, `"m.h.3": 2`, ""},
		{`"m.h.3": 1`, `"m.h.3": "1"`, ""},
		{`"m.h.3`, `"m.h.33`, devicemap.UnknownModule},
		{`"head": 0`, `"head": 1`, ""},
	} {
		text := strings.ReplaceAll(b.String(), c.from, c.to)
		flat, plan, faults, err := devicemap.ParseMap("plan.json", []byte(text))
		if refused := c.kind == "" && c.to != ""; refused && err != nil && strings.Contains(err.Error(), "plan.json: ") {
			continue
		}
		if err != nil || plan == nil {
			t.Fatal(c.to, err)
		}
		r := devicemap.Check(g, table, topo, flat, faults)
		if (len(r.Faults) == 0) != (c.kind == "") || len(r.Faults) > 0 && r.Faults[0].Kind != c.kind {
			t.Errorf("%s becomes %s: %v, want %q", c.from, c.to, r.Faults, c.kind)
		}
	}
}

// TestContradicts: a plan with contradictory figures is refused, whichever of the two is larger.
func TestContradicts(t *testing.T) {
	stages := func(degrees ...int64) func(*devicemap.Plan) {
		return func(plan *devicemap.Plan) {
			first := 0
			plan.Stages = nil
			for i, dp := range degrees {
				stage := devicemap.Stage{Stage: i, Device: devicemap.Device(first), DP: dp}
				for at := range plan.DeviceMap { // a module for each stage, and the rest for the first
					if at == i || i == 0 && at >= len(degrees) {
						plan.DeviceMap[at].Device = stage.Device
						stage.Units = append(stage.Units, plan.DeviceMap[at].Key)
					}
				}
				for range dp {
					stage.Devices = append(stage.Devices, first)
					first++
				}
				plan.Stages = append(plan.Stages, stage)
			}
		}
	}
	peak := func(by int64) func(*devicemap.Plan) {
		return func(plan *devicemap.Plan) {
			device := &plan.Devices[1]
			device.Predicted.PeakAllocatedBytes += by
			device.HeadroomBytes -= by
		}
	}
	for _, c := range []struct {
		name, want string
		change     func(*devicemap.Plan)
	}{
		{"as it was", "", func(*devicemap.Plan) {}},
		{"a stage of two", "", stages(2)},
		{"two stages", "", stages(1, 1)},
		{"a GPU left over", "stages[0].devices: the stages have 1 GPUs, and the topology 2", stages(1)},
		{"a GPU too many", "stages[0].devices: the stages have 3 GPUs, and the topology 2", stages(2, 1)},
		{"a larger peak", "devices[1].predicted.peak_allocated_bytes: 401, and the parts add up to 400", peak(1)},
		{"a smaller peak", "devices[1].predicted.peak_allocated_bytes: 399, and the parts add up to 400", peak(-1)},
	} {
		plan := planOf(t, devicemap.Map{0, 0, 0, 1, 1, 0, 0})
		c.change(plan)
		var b bytes.Buffer
		if err := devicemap.WriteJSON(&b, plan); err != nil {
			t.Fatal(err)
		}
		_, _, _, err := devicemap.ParseMap("plan.json", b.Bytes())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestParseMapRefuses(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, `map.json: the file is empty`},
		{`[]`, `map.json: line 1, column 1: cannot read array as object`},
		{`{"a": 0, "a": 1}`, `map.json: a (line 1, column 10): duplicate object member name`},
		{`{"a": 0} x`, `map.json: line 1, column 10: invalid character 'x' after top-level value`},
		{`{"a": 0`, `map.json: line 1, column 8: the file is cut off: unexpected EOF`},
		{`{"model_type": "llama", "vocab_size": 5}`, `map.json: model_type: this is a model's config, and neither a plan nor a device map (module path → device)`},
		{`{"format_version": "devmap.plan/v2"}`, `map.json: format_version: "devmap.plan/v2" is not "devmap.plan/v1"`},
		{`{"format_version": "devmap.plan/v1"}`, `map.json: topology: missing`},
		{`{"format_version": "devmap.plan/v1", "colour": 1}`, `map.json: colour (line 1, column 38): unknown field "colour"`},
		{`{"format_version": "devmap.plan/v1", "topology": {"format_version": "devmap.topology/v1", "devices": [{"name": "x", "capacity_bytes": 5}]}}`, `map.json: device_map: missing`},
	} {
		_, _, _, err := devicemap.ParseMap("map.json", []byte(c.in))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s\n error %v\n  want %s", c.in, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(path, []byte(`{"a": 0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := devicemap.ReadPlan(path); err == nil || !strings.Contains(err.Error(), "format_version: missing: this is no plan") {
		t.Errorf("a flat map as a plan: %v", err)
	}
	if _, _, _, err := devicemap.ReadMap(filepath.Dir(path)); err == nil || !strings.HasSuffix(err.Error(), ": a directory, not a device map") {
		t.Errorf("a folder: %v", err)
	}
}

// FuzzParseMap: any text is refused in one line, or checked without a panic. A map without faults
// covers the model and is the same after writing and reading.
func FuzzParseMap(f *testing.F) {
	g := small(f)
	table, topo := load(f, g, 1000, 2)
	var plan bytes.Buffer
	if err := devicemap.WriteJSON(&plan, planOf(f, devicemap.Map{0, 0, 0, 1, 1, 1, 0})); err != nil {
		f.Fatal(err)
	}
	f.Add(plan.Bytes())
	moved := offloaded(f)
	for _, bytes := range []any{1000, -1, 1 << 62, nil} {
		moved.set("devices/0/predicted/host_bytes", bytes)
		f.Add(fixtures.Must(json.Marshal(moved))(f))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		flat, _, faults, err := devicemap.ParseMap("map.json", data)
		if err != nil {
			if s := err.Error(); !strings.HasPrefix(s, "map.json: ") || strings.ContainsFunc(s, unicode.IsControl) {
				t.Fatalf("error %q", s)
			}
			return
		}
		r := devicemap.Check(g, table, topo, flat, faults)
		for _, fault := range r.Faults {
			if s := fault.String(); strings.ContainsFunc(s, unicode.IsControl) {
				t.Fatalf("fault %q", s)
			}
		}
		if len(r.Faults) > 0 {
			return
		}
		for u, d := range r.Map {
			if d == devicemap.Nowhere || int(d) >= len(topo.Devices) {
				t.Fatalf("no fault, and unit %d is on %v", u, d)
			}
		}
		if r.Map[0] != r.Map[len(r.Map)-1] {
			t.Fatalf("no fault, and the tied units are apart: %v", r.Map)
		}
		out, err := flat.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := devicemap.ReadFlat("map.json", out)
		if d := cmp.Diff(flat, again); err != nil || d != "" {
			t.Fatalf("%v (-before +after):\n%s", err, d)
		}
	})
}

// TestImbalance: idle devices count.
func TestImbalance(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 1000, 4)
	all := make(devicemap.Map, len(g.Units))
	if got := devicemap.ImbalanceOf(devicemap.Predict(table, topo, all)); got != 4 {
		t.Errorf("all on one of four: %v, want 4", got)
	}
	if got := devicemap.ImbalanceOf([]devicemap.Prediction{{}, {}}); got != 1 {
		t.Errorf("nothing anywhere: %v, want 1", got)
	}
	if s := devicemap.StepSeconds(&costmodel.Table{Workload: costmodel.Workload{Mode: costmodel.Load}}, topo, nil); s != nil {
		t.Errorf("loading takes a step of %v s", *s)
	}
}
