package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestFrontRefused: a front without maps, or with another value in their place, gets an error with
// the place.
func TestFrontRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"format_version":"devmap.front/v1","complete":true}`:                          "front.json: points: there is no map: write the file with devmap plan --objective front -o",
		`{"format_version":"devmap.front/v1","complete":true,"points":[]}`:              "front.json: points: there is no map: write the file with devmap plan --objective front -o",
		`{"format_version":"devmap.front/v1","complete":true,"points":[{"devices":3}]}`: "front.json: points[0].devices (line 1, column 74): cannot read number as array",
	} {
		if _, _, err := planOfFront("front.json", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestFrontFaults: a front that contradicts itself is refused with its file and field.
func TestFrontFaults(t *testing.T) {
	const file = `{"format_version":"devmap.front/v1","complete":%s,"points":[%s]}`
	point := func(seconds, share, used float64) string {
		return fmt.Sprintf(`{"step_seconds":%v,"largest_share":%v,"devices":[{"capacity_bytes":1100,"reserved_bytes":100,"predicted":{"peak_allocated_bytes":%v}}]}`, seconds, share, used)
	}
	both := point(1, 0.5, 500) + "," + point(2, 0.25, 250)
	if _, points, err := planOfFront("front.json", fmt.Appendf(nil, file, "true", both)); err != nil || len(points) != 2 {
		t.Fatalf("%v, %d points", err, len(points))
	}
	for _, test := range []struct{ complete, points, want string }{
		{`"yes"`, both, `complete: missing, or neither true nor false`},
		{`true`, ``, `points: there is no map`},
		{`true`, `3`, `points[0] (`},
		{`true`, point(1, 7, 500), `points[0].largest_share: 7, and the largest share of its budget that a device of "devices" has is 0.5`},
		{`true`, point(0, 0.5, 500), `points[0].step_seconds: 0 is not above 0`},
		{`true`, point(2, 0.25, 250) + "," + point(1, 0.5, 500), `points[1].step_seconds: 1 is not above 2, that of the point before`},
		{`true`, point(1, 0.5, 500) + "," + point(1, 0.5, 500), `points[1].step_seconds: 1 is not above 1, that of the point before`},
		{`true`, point(1, 0.5, 500) + "," + point(2, 0.5, 500), `points[1].largest_share: 0.5 is not below 0.5, that of the point before`},
	} {
		_, _, err := planOfFront("front.json", fmt.Appendf(nil, file, test.complete, test.points))
		if err == nil || !strings.HasPrefix(err.Error(), "front.json: "+test.want) {
			t.Errorf("%s\n%v, want %s", test.points, err, test.want)
		}
	}
}

// FuzzFront: any file is refused with an error or has a page's points, and no reader panics.
func FuzzFront(f *testing.F) {
	f.Add([]byte(`{"format_version":"devmap.front/v1","complete":true,"model":{},"points":[{"step_seconds":1,"largest_share":0,"devices":[]}]}`))
	f.Add([]byte(`{"format_version":"devmap.front/v1","points":[]}`))
	f.Add([]byte(`{"format_version":"devmap.front/v1","points":[{"devices":3}]}`))
	f.Add([]byte(`{"format_version":"devmap.plan/v1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, points, err := planOfFront("front.json", data)
		switch {
		case err != nil && (plan != nil || points != nil):
			t.Errorf("%v, and a plan", err)
		case err == nil && len(points) > 0 && !points[0].Chosen:
			t.Error("no point is chosen")
		}
		if err == nil {
			devicemap.ReadPlan("front.json", plan) //nolint:errcheck // it must not panic
		}
	})
}

// TestFrontAgain: a point's schedule, recomputed blocks and blocks in host memory make its map again.
// The file has a page, also of an order in the shape of a V.
func TestFrontAgain(t *testing.T) {
	t.Parallel()
	vees, lists, moved := 0, 0, 0
	for _, open := range []string{"--gpu rtx-4090 --schedule auto", "--gpu h100-80gb --schedule gpipe --offload-activations auto"} {
		made := pointsAgain(t, strings.Fields(open))
		vees, lists, moved = vees+made[0], lists+made[1], moved+made[2]
	}
	if vees == 0 || lists == 0 || moved == 0 {
		t.Errorf("%d orders are in the shape of a V, %d points recompute, %d move blocks", vees, lists, moved)
	}
}

// pointsAgain makes each point of a front again. It returns the numbers of orders in the shape of a V,
// of recomputing points and of those that move blocks.
func pointsAgain(t *testing.T, open []string) (counts [3]int) {
	t.Helper()
	dir := t.TempDir()
	model, file := filepath.Join(dir, "config.json"), filepath.Join(dir, "front.json")
	config := `{"model_type": "gpt2", "n_layer": 6, "n_head": 2, "n_embd": 512, "vocab_size": 1000, "n_positions": 128}`
	if err := os.WriteFile(model, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"plan", model, "--gpus", "3", "--mode", "train", "--batch", "6", "--seq", "128", "--micro-batches", "6", "--strategy", "pipeline", "--runtime", "devmap", "--time-limit", "1h"}
	devmap(t, 0, slices.Concat(args, open, []string{"--recompute", "auto", "--objective", "front", "-o", file})...)
	var front struct {
		Points []struct {
			Seconds             float64         `json:"step_seconds"`
			Map                 json.RawMessage `json:"device_map"`
			Schedule, Recompute string
			Moved               string `json:"offload_activations"`
			Devices             []contractDevice
		}
	}
	if err := json.Unmarshal(fixtures.Must(os.ReadFile(file))(t), &front); err != nil {
		t.Fatal(err)
	}
	for _, point := range front.Points {
		var plan struct {
			Seconds float64         `json:"step_seconds"`
			Map     json.RawMessage `json:"device_map"`
		}
		moves := cmp.Or(point.Moved, "none")
		again := slices.Concat(args, open[:2], []string{"--schedule", point.Schedule, "--offload-activations", moves, "--recompute", point.Recompute, "--objective", "time", "--json"})
		if err := json.Unmarshal(devmap(t, 0, again...), &plan); err != nil {
			t.Fatal(err)
		}
		if plan.Seconds != point.Seconds || strings.Join(strings.Fields(string(plan.Map)), "") != strings.Join(strings.Fields(string(point.Map)), "") {
			t.Errorf("%s, %s, %s: %v, %s, not %v, %s", point.Schedule, point.Recompute, moves, plan.Seconds, plan.Map, point.Seconds, point.Map)
		}
		checkPoint(t, model, file, point.Map, point.Devices, slices.Concat(args[2:16], again[len(args):len(args)+8]))
		if strings.HasPrefix(point.Schedule, "v-order:") {
			counts[0]++
		}
		if point.Recompute != "none" {
			counts[1]++
		}
		if moves != "none" {
			counts[2]++
		}
	}
	devmap(t, 0, "report", file, "--json")
	return counts
}

// checkPoint follows the advice that comes with a front in place of a map.
func checkPoint(t *testing.T, model, front string, placement []byte, devices []contractDevice, settings []string) {
	t.Helper()
	var errors bytes.Buffer
	if status := run(t.Context(), []string{"check", model, front}, io.Discard, &errors); status == 0 || !strings.Contains(errors.String(), "`devmap check MODEL MAP` takes a point's device_map") {
		t.Errorf("status %d: %s", status, errors.String())
	}
	saved := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(saved, placement, 0o600); err != nil {
		t.Fatal(err)
	}
	var checked struct{ Devices []contractDevice }
	if err := json.Unmarshal(devmap(t, 0, slices.Concat([]string{"check", model, saved, "--json"}, settings)...), &checked); err != nil || !reflect.DeepEqual(devices, checked.Devices) {
		t.Errorf("%v: a point has %v, its check %v, %v", settings, devices, checked.Devices, err)
	}
}
