package emit_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

var plan = &devicemap.Plan{DeviceMap: devicemap.Flat{
	{Key: "model.embed_tokens", Device: 0},
	{Key: "model.layers.0", Device: 0},
	{Key: "model.layers.1", Device: 10},
	{Key: "model.norm", Device: devicemap.CPU},
	{Key: "lm_head", Device: devicemap.Disk},
	{Key: `odd"naïve`, Device: 1},
}}

// maps are the engines that read a device map.
var maps = []string{"accelerate", "ms-swift"}

// TestGolden holds each of their files to the committed one, byte for byte,
// and reads it as the engines do: an object of numbers, "cpu" and "disk".
func TestGolden(t *testing.T) {
	for _, engine := range maps {
		t.Run(engine, func(t *testing.T) {
			e, err := emit.For(engine)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := e.Write(&b, plan); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", engine+".json")
			if os.Getenv("UPDATE_GOLDEN") == "1" {
				if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%s is\n%s, want\n%s", golden, b.Bytes(), want)
			}
			var read map[string]any
			if err := json.Unmarshal(b.Bytes(), &read); err != nil {
				t.Fatal(err)
			}
			if len(read) != len(plan.DeviceMap) || read["model.layers.1"] != 10.0 || read["model.norm"] != "cpu" || read["lm_head"] != "disk" {
				t.Errorf("it reads as %v", read)
			}
			if usage, _ := e.Usage(plan, "dir/map.json"); strings.Count(usage, "dir/map.json") != 1 {
				t.Errorf("usage %q does not name the file", usage)
			}
		})
	}
	if len(emit.Names()) != len(maps)+5 { // TestDeepSpeed, TestOpenPI, TestPipeline, TestSchedule
		t.Errorf("engines %v: add the golden file of a new one", emit.Names())
	}
}

// target is that of an engine.
func target(t *testing.T, name string) emit.Target {
	t.Helper()
	found, err := emit.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRefuses(t *testing.T) {
	if _, err := emit.For("vllm"); err == nil || err.Error() != `unknown engine "vllm" (built: accelerate, deepspeed, diffusers, ms-swift, openpi, torch-schedule, xdit)` {
		t.Errorf("error %v", err)
	}
	piped := &devicemap.Plan{DeviceMap: plan.DeviceMap, Workload: costmodel.Workload{Strategy: costmodel.Pipeline}}
	piped.Model.Name = "m"
	for _, e := range maps {
		if err := target(t, e).Write(new(bytes.Buffer), piped); err == nil || !strings.Contains(err.Error(), `is a pipeline's: its stages run side by side`) {
			t.Errorf("%s, pipeline: error %v", e, err)
		}
	}
	trained := &devicemap.Plan{DeviceMap: plan.DeviceMap, Workload: costmodel.Workload{Mode: costmodel.Train}}
	if err := target(t, "accelerate").Write(new(bytes.Buffer), trained); err == nil || !strings.Contains(err.Error(), "trains units that are on the CPU or disk") {
		t.Errorf("offload in training: error %v", err)
	}
	sharded := &devicemap.Plan{Workload: costmodel.Workload{Strategy: costmodel.FSDP}}
	sharded.Model.Name = "m"
	if err := target(t, "accelerate").Write(new(bytes.Buffer), sharded); err == nil || err.Error() != `the plan for "m" has no device map: its strategy is fsdp` {
		t.Errorf("error %v", err)
	}
}
