package devicemap_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// small returns a model of an embedding, blocks of two layers and a tied head.
func small(tb testing.TB) *modelgraph.Graph {
	tb.Helper()
	weight := func(n int64) []modelgraph.Tensor {
		return []modelgraph.Tensor{{Name: "weight", Shape: []int64{n}, DType: modelgraph.BF16}}
	}
	layers := []modelgraph.Layer{{Name: "m.embed", Params: weight(100)}}
	for i := range 4 {
		unit := fmt.Sprintf("m.h.%d", i)
		layers = append(layers, modelgraph.Layer{Name: unit + ".attn", Unit: unit, Params: weight(40)}, modelgraph.Layer{Name: unit + ".mlp", Unit: unit, Params: weight(60)})
	}
	layers = append(layers, modelgraph.Layer{Name: "m.norm", Params: weight(1)}, modelgraph.Layer{Name: "head", Params: weight(100)})
	g := fixtures.Must(modelgraph.New("small", layers, [][]string{{"m.embed.weight", "head.weight"}}))(tb)
	return g
}

func load(tb testing.TB, g *modelgraph.Graph, capacity int64, devices int) (*costmodel.Table, *costmodel.Topology) {
	tb.Helper()
	w := fixtures.Must(estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Load}))(tb)
	table := fixtures.Must(estimate.Table(g, w))(tb)
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, devices)}
	for i := range topo.Devices {
		topo.Devices[i].CapacityBytes = capacity
	}
	return table, topo
}

// TestAllFaultsAtOnce: a map with every kind of fault.
func TestAllFaultsAtOnce(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 450, 2)
	const file = `{"m.embed": 0, "m.h.0": 0, "m.h.1.attn": 0, "m.h.1.mlp": 1, "m.h.2": "0", "m.h.2.attn": 1, "m.h.3": 7, "m.h.9": 1, "head": 1, "x": -1}`
	flat, faults, err := devicemap.ReadFlat("map.json", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	flat = append(flat, devicemap.Flat{{Key: "m.h.0.mlp", Device: 0}}...)
	r := devicemap.Check(g, table, topo, flat, faults)
	var got []string
	for _, f := range r.Faults {
		got = append(got, f.String())
	}
	want := []string{
		`device-not-a-number: "m.h.2": "0" is a string: write the number 0`,
		`unknown-device: "x": device -1 is negative`,
		`unknown-device: "m.h.3": device 7 is not among the 2 devices (0 to 1)`,
		`unknown-module: "m.h.9": the model has no such module; the nearest is "m.h.0"`,
		`unknown-module: "x": the model has no such module; the nearest is "m"`,
		`overlap: "m.h.2.attn": it lies inside "m.h.2", which has no valid device in the map; keep one of the two`,
		`overlap: "m.h.0.mlp": it lies inside "m.h.0", which has device 0 in the map; keep one of the two`,
		`split-unit: "m.h.1": it is split over devices 0, 1; its class must stay on one device`,
		`no-device: "m.norm": no key of the map covers it`,
		`ties-apart: "m.embed": units that share a parameter are apart: "m.embed" on 0, "head" on 1; the copies would take twice the memory`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
	topo.Devices[0].CapacityBytes = 300
	r = devicemap.Check(g, table, topo, flat, faults)
	last := r.Faults[len(r.Faults)-1].String()
	if len(r.Faults) != len(want)+1 || last != `does-not-fit: "device 0": it would hold 400 B at its peak (weights), 100 B more than its budget of 300 B` {
		t.Errorf("%d faults, the last %s", len(r.Faults), last)
	}
}

// TestGoodMaps: maps as engines write them for this model have no fault.
func TestGoodMaps(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 1<<30, 2)
	for _, file := range []string{
		`{"": 1}`,
		`{"m": 0, "head": 0}`,
		`{"m.embed": 0, "m.h": 1, "m.norm": "cuda:1", "head": "cuda"}`,
		`{"m.embed": "cpu", "m.h.0": "disk", "m.h.1": 1, "m.h.2": 0, "m.h.3": 1, "m.norm": 0, "head": "cpu"}`,
		`{"m.embed.weight": 0, "m.h.0.attn": 1, "m.h.0.mlp": 1, "m.h.1": 1, "m.h.2": 1, "m.h.3": 1, "m.norm": 1, "head": 0}`,
	} {
		flat, faults, err := devicemap.ReadFlat("map.json", []byte(file))
		if err != nil {
			t.Fatal(file, err)
		}
		r := devicemap.Check(g, table, topo, flat, faults)
		if len(r.Faults) > 0 || slices.Contains(r.Map, devicemap.Nowhere) {
			t.Errorf("%s: %v, map %v", file, r.Faults, r.Map)
		}
	}
}

// TestAccelerateMaps: the maps of Accelerate 1.15 for public models name only modules that exist,
// and miss none.
func TestAccelerateMaps(t *testing.T) {
	files, err := filepath.Glob("../../fixtures/tensors/*.json.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tensor files: %v", err)
	}
	for _, file := range files {
		config, maps := readMaps(t, file)
		g, err := hf.FromConfig("config.json", config)
		if err != nil {
			t.Fatal(file, err)
		}
		for n, text := range maps {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz")+"/"+n, func(t *testing.T) {
				flat, faults, err := devicemap.ReadFlat(file, text)
				if err != nil {
					t.Fatal(err)
				}
				table, topo := load(t, g, 1<<49, 8)
				for _, f := range devicemap.Check(g, table, topo, flat, faults).Faults {
					t.Error(f)
				}
			})
		}
	}
}

func readMaps(t *testing.T, file string) (config []byte, maps map[string][]byte) {
	t.Helper()
	f := fixtures.Must(os.Open(file))(t)
	defer f.Close()
	z := fixtures.Must(gzip.NewReader(f))(t)
	var c struct {
		Config json.RawMessage
		Maps   map[string]struct{ Map json.RawMessage } `json:"accelerate_maps"`
	}
	if err := json.NewDecoder(z).Decode(&c); err != nil {
		t.Fatal(file, err)
	}
	maps = map[string][]byte{}
	for n, m := range c.Maps {
		maps[n] = m.Map
	}
	if len(maps) != 3 {
		t.Fatalf("%s has %d maps", file, len(maps))
	}
	return c.Config, maps
}

// TestUnknownEngine: a strategy that runs no device map is a fault, and there is no prediction.
func TestUnknownEngine(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 2000, 2)
	for strategy, want := range map[costmodel.Strategy]int{"": 0, costmodel.DeviceMap: 0, "zero4": 1, costmodel.FSDP: 1} {
		table.Workload.Strategy = strategy
		r := devicemap.Check(g, table, topo, make(devicemap.Map, len(g.Units)).Flatten(g), nil)
		if len(r.Faults) != want || want > 0 && r.Faults[0].Kind != devicemap.UnknownEngine {
			t.Errorf("%q: %v", strategy, r.Faults)
		}
		if used := r.Devices[0].Predicted.PeakAllocatedBytes; (used > 0) != (want == 0) {
			t.Errorf("%q: %d bytes", strategy, used)
		}
	}
}

// TestPipelineWithoutStages: an unknown schedule is a fault. So is a map of another model, which
// puts no unit on any device.
func TestPipelineWithoutStages(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 2000, 2)
	table.Workload.Strategy, table.Workload.MicroBatches = costmodel.Pipeline, 4
	whole := make(devicemap.Map, len(g.Units)).Flatten(g)
	for _, c := range []struct {
		kind costmodel.ScheduleKind
		flat devicemap.Flat
		want string
	}{
		{"dual", whole, devicemap.UnknownEngine},
		{costmodel.Interleaved, devicemap.Flat{{Key: "another.model"}}, devicemap.UnknownModule},
		{costmodel.GPipe, nil, devicemap.NoDevice},
	} {
		table.Workload.Schedule = c.kind
		if r := devicemap.Check(g, table, topo, c.flat, nil); len(r.Faults) == 0 || r.Faults[0].Kind != c.want {
			t.Errorf("%s: %v, want %s first", c.kind, r.Faults, c.want)
		}
	}
}

// TestStagesOfV: the stages of a V go down the devices and back, two on each.
func TestStagesOfV(t *testing.T) {
	g := small(t)
	table, topo := load(t, g, 2000, 2)
	table.Workload.Strategy, table.Workload.MicroBatches, table.Workload.Schedule = costmodel.Pipeline, 4, costmodel.ZBV
	for _, c := range []struct {
		placement devicemap.Map
		want      string
	}{
		{devicemap.Map{0, 0, 1, 1, 1, 0, 0}, ""},
		{devicemap.Map{0, 1, 1, 0, 0, 1, 1}, "stage 2 is on device 0; the stages of zbv go down the devices and back, so that it belongs on device 1"},
		{devicemap.Map{0, 0, 0, 1, 1, 1, 1}, "zbv has two stages on each of 2 devices, and the map has 2"},
	} {
		report := devicemap.Check(g, table, topo, c.placement.Flatten(g), nil)
		if len(report.Faults) == 0 && c.want == "" {
			continue
		}
		if len(report.Faults) == 0 || c.want == "" || !strings.Contains(report.Faults[0].Message.String(), c.want) {
			t.Errorf("%v: %v, want %q", c.placement, report.Faults, c.want)
		}
	}
}

// TestTightDevices: a device is tight if its free memory is less than the bytes that the pool may
// reserve beyond the peak. Less than 0 is a fault. The note of a tight device tells what PyTorch
// does, if the pool is PyTorch's.
func TestTightDevices(t *testing.T) {
	for _, c := range []struct {
		headroom      int64
		verdict       devicemap.Verdict
		faults, notes int
	}{{-1, "no", 1, 0}, {0, "tight", 0, 1}, {10, "tight", 0, 1}, {29, "tight", 0, 1}, {30, "fits", 0, 0}} {
		devices := []devicemap.Prediction{{CapacityBytes: 100 + c.headroom}}
		devices[0].Predicted.PeakAllocatedBytes = 100
		devices[0].Predicted.SlackBytes = [2]int64{10, 30}
		devicemap.Settle(&devices[0])
		report := devicemap.Judge(devices, "accelerate")
		if report.Verdict != c.verdict || len(report.Faults) != c.faults || len(report.Warnings) != c.notes {
			t.Errorf("%d free: %q, %v, %v", c.headroom, report.Verdict, report.Faults, report.Warnings)
		}
		for _, note := range report.Warnings {
			if !strings.HasPrefix(note, "GPU 0 is tight: ") || !strings.Contains(note, "PYTORCH_ALLOC_CONF=expandable_segments:True") {
				t.Errorf("note %q", note)
			}
		}
		for _, note := range devicemap.Judge(devices, "jax").Warnings {
			if strings.Contains(note, "PYTORCH") {
				t.Errorf("JAX's pool is not PyTorch's: %q", note)
			}
		}
	}
}

// TestBandNotes: a peak that fits has a note if the high end of its band does not. A peak that does
// not fit has a fault instead.
func TestBandNotes(t *testing.T) {
	for _, c := range []struct {
		capacity, high int64
		band           float64
		notes          int
	}{{105, 110, 0.1, 1}, {110, 110, 0.1, 0}, {99, 110, 0.1, 0}, {105, 110, 0, 0}} {
		devices := []devicemap.Prediction{{Device: 3, CapacityBytes: c.capacity}}
		devices[0].Predicted.PeakAllocatedBytes = 100
		devices[0].Predicted.PeakRangeBytes = []int64{90, c.high}
		devicemap.Settle(&devices[0])
		notes := devicemap.BandNotes(c.band, devices)
		if len(notes) != c.notes || c.notes > 0 && notes[0] != "the prediction's band of ±10% includes a miss: GPU 3 may need up to 110 B and has 105 B" {
			t.Errorf("%+v: %q", c, notes)
		}
	}
}
