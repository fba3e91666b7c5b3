package benchfile

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

func dnnFixtures(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "fixtures", "workloads", "dnn-partitioning", "*", "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	return files
}

// The counts were taken from the files of msr-fiddle/dnn-partitioning
// (b207b6a) by a script that shares nothing with the parser.
func TestParseDNNPartitioning(t *testing.T) {
	want := map[string]struct {
		nodes, edges, groups, accelerators, cpus int
		time                                     float64 // in all, on accelerators
	}{
		"throughput/LayerGraphs/bert24_inference.json":      {32, 55, 32, 6, 1, 92.406},
		"throughput/LayerGraphs/bert24_training.json":       {64, 110, 32, 6, 1, 217.813},
		"throughput/LayerGraphs/inceptionv3_inference.json": {326, 363, 326, 6, 1, 310.969},
		"throughput/OperatorGraphs/bert_l-3_training.json":  {600, 817, 121 + 21, 3, 1, 122.987}, // 21 nodes without a class
		"latency/LayerGraphs/bert24_inference.json":         {32, 55, 32, 5, 8, 92.406},
	}
	for _, file := range dnnFixtures(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := parseDNNPartitioning(file, data)
		if err != nil {
			t.Fatal(err)
		}
		w, known := want[strings.Join(strings.Split(filepath.ToSlash(file), "/")[5:], "/")]
		if !known {
			continue
		}
		groups, time := 0, 0.0
		for _, n := range p.Nodes {
			groups = max(groups, n.Group+1)
			time += n.Time
		}
		if len(p.Nodes) != w.nodes || len(p.Edges) != w.edges || groups != w.groups ||
			p.Accelerators != w.accelerators || p.CPUs != w.cpus || math.Abs(time-w.time) > 1e-3 {
			t.Errorf("%s: %d nodes, %d edges, %d groups, %d+%d devices, %v; want %+v", file, len(p.Nodes), len(p.Edges), groups, p.Accelerators, p.CPUs, time, w)
		}
	}
}

const smallDNN = `{"maxSizePerFPGA": 8, "maxFPGAs": 2, "maxCPUs": 0, "nodes": [
	{"id": 7, "supportedOnFpga": 1, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": false, "colorClass": 3, "layerId": 4},
	{"id": 5, "supportedOnFpga": false, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 0, "size": 2},
	{"id": 6, "supportedOnFpga": true, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 1, "colorClass": 3, "name": "last"}],
	"edges": [{"sourceId": 7, "destId": 5, "cost": 0.5, "size": 9}, {"sourceId": 7, "destId": 6, "cost": 0.5}]}`

func TestParseDNNPartitioningFields(t *testing.T) {
	p, err := parseDNNPartitioning("f", []byte(smallDNN))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := p.Nodes[0], p.Nodes[1], p.Nodes[2]
	if a.Group != c.Group || a.Group == b.Group || !a.Supported || b.Supported || a.Backward || !c.Backward ||
		a.Transfer != 0.5 || b.Transfer != 0 || b.Size != 2 || a.Name != "node7" || c.Name != "last" || p.Edges[0] != [2]int{0, 1} {
		t.Fatalf("%+v", p)
	}
}

func TestParseDNNPartitioningFaults(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"id": 5`, `"id": 7`, "nodes[1].id: 7 is also the id of nodes[0]"},
		{`"destId": 5`, `"destId": 8`, "edges[0].destId: there is no node 8"},
		{`"destId": 5`, `"destId": 7`, "edges[0]: from node 7 to itself"},
		{`"destId": 6, "cost": 0.5`, `"destId": 6, "cost": 0.6`, "edges[1].cost: 0.6, but edges[0] from the same node 7 costs 0.5"},
		{`"supportedOnFpga": 1`, `"supportedOnFpga": 2`, "2 is none of true, false, 1 and 0"},
		{`"cpuLatency": 2, `, ``, "nodes[0].cpuLatency: missing"},
		{`"isBackwardNode": 0, `, ``, "nodes[1].isBackwardNode: missing"},
		{`"fpgaLatency": 1`, `"fpgaLatency": -1`, "nodes[0].fpgaLatency: -1"},
		{`"maxFPGAs": 2`, `"maxFPGAs": 0`, "there are no devices"},
		{`"maxFPGAs": 2`, `"maxFPGAs": -1`, "maxFPGAs: -1"},
		{`"maxSizePerFPGA": 8`, `"maxSizePerFPGA": 0`, "maxSizePerFPGA"},
		{`"nodes"`, `"knots"`, "nodes: there are none"},
	} {
		text := strings.Replace(smallDNN, c.old, c.new, 1)
		_, err := parseDNNPartitioning("f.json", []byte(text))
		var syntax *modelgraph.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "f.json") {
			t.Errorf("%s: %v; want %q", c.new, err, c.want)
		}
	}
}

func FuzzParseDNNPartitioning(f *testing.F) {
	f.Add([]byte(smallDNN))
	f.Add([]byte(`{"nodes": [{}], "edges": [{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parseDNNPartitioning("f", data)
		if err != nil {
			var syntax *modelgraph.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, e := range p.Edges {
			if min(e[0], e[1]) < 0 || max(e[0], e[1]) >= len(p.Nodes) {
				t.Fatal(e)
			}
		}
		for _, n := range p.Nodes {
			if !(n.Time >= 0 && n.CPUTime >= 0 && n.Size >= 0 && n.Transfer >= 0) || math.IsInf(n.Time+n.CPUTime+n.Size+n.Transfer, 0) || n.Group < 0 || n.Group >= len(p.Nodes) {
				t.Fatalf("%+v", n)
			}
		}
	})
}
