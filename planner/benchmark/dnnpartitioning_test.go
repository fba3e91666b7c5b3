package benchmark

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
)

func TestWritePlacement(t *testing.T) {
	w := read[*benchfile.DNNPartitioning](t, "dnn-partitioning/throughput/LayerGraphs/bert24_inference.json")
	place := make([]int, len(w.Nodes))
	place[1] = 6 // the CPU
	place[2] = 4
	var out bytes.Buffer
	if err := writePlacement(&out, w, place); err != nil {
		t.Fatal(err)
	}
	var got dnnResult
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.FPGAs) != 2 || len(got.CPUs) != 1 || len(got.FPGAs[0].Nodes) != 30 ||
		got.FPGAs[1].Nodes[0] != w.Nodes[2].ID || got.CPUs[0].Nodes[0] != w.Nodes[1].ID {
		t.Fatalf("%s", out.Bytes())
	}
	if got.CPUs[0].Load != w.Nodes[1].CPUTime || got.MaxLoad != max(got.FPGAs[0].Load, got.FPGAs[1].Load, got.CPUs[0].Load) {
		t.Fatalf("%s", out.Bytes())
	}
	place[3] = 7
	if err := writePlacement(&out, w, place); err == nil {
		t.Fatal("device 7 of 7 was written")
	}
}
