package costmodel_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
)

// base is a stub of the catalogue of GPUs.
func base(name string) costmodel.Device {
	if name != "known" {
		return costmodel.Device{}
	}
	return costmodel.Device{Name: name, CapacityBytes: 1, ReservedBytes: 9, WorkspaceBytes: 32, ContextBytes: 64, FLOPS: 1e12, Slack: [2]float64{.1, .2}}
}

func TestParseTopology(t *testing.T) {
	const in = `{"format_version": "devmap.topology/v1",
 "devices": [{"name": "known", "capacity_bytes": 1000, "context_bytes": 0}, {"name": "new", "capacity_bytes": 500, "reserved_bytes": 100, "flops": 2e12}],
 "links": [{"from": 0, "to": 1, "bytes_per_second": 450e9, "latency_seconds": 1e-6}]}`
	got := fixtures.Must(costmodel.ParseTopology("topology.json", []byte(in), base))(t)
	want := &costmodel.Topology{
		Devices: []costmodel.Device{
			{Name: "known", CapacityBytes: 1000, WorkspaceBytes: 32, FLOPS: 1e12, Slack: [2]float64{.1, .2}},
			{Name: "new", CapacityBytes: 500, ReservedBytes: 100, FLOPS: 2e12},
		},
		Links: []costmodel.Link{{From: 0, To: 1, BytesPerSecond: 450e9, LatencySeconds: 1e-6}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A context of 0 is in the file, so that a known GPU's does not replace it.
	again := fixtures.Must(costmodel.ParseTopology("topology.json", fixtures.Must(json.Marshal(got))(t), base))(t)
	if diff := cmp.Diff(want.Devices[0], again.Devices[0]); diff != "" {
		t.Errorf("written and read (-want +got):\n%s", diff)
	}
	if b := got.Devices[1].Budget(); b != 400 {
		t.Errorf("budget %d, want 400", b)
	}
}

func TestTopologyRefuses(t *testing.T) {
	const head = `{"format_version":"devmap.topology/v1","devices":[`
	device := func(fields string) string { return head + `{"name":"x","capacity_bytes":1000` + fields + `}]}` }
	links := func(line string) string {
		return head + `{"name":"x","capacity_bytes":1},{"name":"x","capacity_bytes":1}],"links":[` + line + `]}`
	}
	for _, c := range []struct{ in, want string }{
		{`{"format_version":"devmap.model/v1","devices":[]}`, `format_version: "devmap.model/v1" is not "devmap.topology/v1"`},
		{head + `]}`, `devices: 0 devices, not 1 to 4096`},
		{head + strings.Repeat(`{"name":"x","capacity_bytes":1},`, 4096) + `{"name":"x","capacity_bytes":1}]}`, `devices: 4097 devices, not 1 to 4096`},
		{head + `{"name":"x","capacity_bytes":0}]}`, `devices[0]: a capacity of 0 bytes holds nothing`},
		{head + `{"name":"x","capacity_bytes":-5}]}`, `devices[0]: a capacity of -5 bytes holds nothing`},
		{head + `{"name":"x","capacity_bytes":1125899906842625}]}`, `devices[0]: a capacity of 1125899906842625 bytes is more than 2^50`},
		{device(`,"reserved_bytes":1000`), `devices[0]: 1000 B of 1000 B is reserved: nothing is left`},
		{device(`,"reserved_bytes":-1`), `devices[0]: a negative size (reserved -1, workspace 0, context 0 bytes)`},
		{device(`,"workspace_bytes":-1`), `devices[0]: a negative size (reserved 0, workspace -1, context 0 bytes)`},
		{device(`,"context_bytes":9223372036854775807`), `devices[0]: a workspace or context of more than 2^50 bytes`},
		{device(`,"flops":-1`), `devices[0]: flops -1 or slack [0 0] makes no sense`},
		{device(`,"slack":[0.5,0.1]`), `devices[0]: flops 0 or slack [0.5 0.1] makes no sense`},
		{device(`,"colour":1`), `devices[0].colour (line 1, column 85): unknown field "colour"`},
		{device(`,"name":"y"`), `devices[0].name (line 1, column 85): duplicate object member name`},
		{device(``) + `x`, `line 1, column 87: invalid character 'x' after top-level value`},
		{links(`{"from":0,"to":2,"bytes_per_second":1}`), `links[0]: from 0 to 2 is no link between two of the 2 devices`},
		{links(`{"from":-1,"to":1,"bytes_per_second":1}`), `links[0]: from -1 to 1 is no link between two of the 2 devices`},
		{links(`{"from":1,"to":1,"bytes_per_second":1}`), `links[0]: from 1 to 1 is no link between two of the 2 devices`},
		{links(`{"from":0,"to":1,"bytes_per_second":0}`), `links[0]: 0 bytes/s with 0 s latency is no link`},
		{links(`{"from":0,"to":1,"bytes_per_second":1,"latency_seconds":-1}`), `links[0]: 1 bytes/s with -1 s latency is no link`},
	} {
		_, err := costmodel.ParseTopology("t.json", []byte(c.in), base)
		if err == nil || err.Error() != "t.json: "+c.want {
			t.Errorf("%.120s\n error %v\n  want t.json: %s", c.in, err, c.want)
		}
	}
}

// FuzzTopology: any input is refused in one line, or is a topology that survives writing.
// The report of a run has the topology of its plan, with measured ratios.
func TestParseReport(t *testing.T) {
	const report = `{"format_version": "devmap.report/v1", "backend": "cuda", "topology": %s}`
	const measured = `{"format_version": "devmap.topology/v1", "devices": [{"name": "known", "capacity_bytes": 1000, "forward_ratio": 1.2}]}`
	got, err := costmodel.ParseTopology("run.json", []byte(fmt.Sprintf(report, measured)), base)
	if err != nil || len(got.Devices) != 1 || got.Devices[0].ForwardRatio != 1.2 || got.Devices[0].FLOPS != 1e12 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"format_version": "devmap.report/v1"}`: `run.json: topology: missing: the run measured no times (three training steps or more on GPUs do)`,
		fmt.Sprintf(report, `{"format_version": "devmap.topology/v1", "devices": [{"name": "known", "capacity_bytes": 1000, "forward_ratio": -1}]}`): `run.json: devices[0]: forward_ratio: -1 is not above 0 and at most 1e21 (leave it out if it is not measured)`,
		fmt.Sprintf(report, `{"format_version": "devmap.topology/v1", "devices": [{"name": "known", "capacity_bytes": 1000, "update_ratio": 0}]}`):   `run.json: devices[0]: update_ratio: 0 is not above 0 and at most 1e21 (leave it out if it is not measured)`,
	} {
		if _, err := costmodel.ParseTopology("run.json", []byte(text), base); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzTopology(f *testing.F) {
	f.Add([]byte(`{"format_version": "devmap.report/v1", "topology": {"format_version": "devmap.topology/v1", "devices": [{"name": "known", "weights_ratio": 2}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		topo, err := costmodel.ParseTopology("t.json", data, base)
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "t.json: ") || strings.ContainsFunc(text, unicode.IsControl) {
				t.Fatalf("error %q", text)
			}
			return
		}
		var sum int64
		for i := range topo.Devices {
			if b := topo.Devices[i].Budget(); b <= 0 || sum+b < sum {
				t.Fatalf("device %d has a budget of %d, after %d", i, b, sum)
			}
			sum += topo.Devices[i].Budget()
		}
		out := fixtures.Must(json.Marshal(topo))(t)
		again, err := costmodel.ParseTopology("t.json", out, func(string) costmodel.Device { return costmodel.Device{} })
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, out)
		}
		if diff := cmp.Diff(topo, again); diff != "" {
			t.Fatalf("(-before +after):\n%s", diff)
		}
	})
}
