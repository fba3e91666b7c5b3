package pose

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/go-json-experiment/json"
)

func readDNN(t *testing.T, name string) *benchfile.DNNPartitioning {
	t.Helper()
	file := filepath.Join("..", "..", "..", "fixtures", "workloads", "dnn-partitioning", name+".json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Read[*benchfile.DNNPartitioning](file, data)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The largest loads in milliseconds that dp of msr-fiddle/dnn-partitioning
// finds, whose search is exact. It gives up on InceptionV3: 51.5519 is what it
// finds for one order of the nodes (-linearize), which turns out to be best.
func TestDNNPartitioningContiguous(t *testing.T) {
	for _, c := range []struct {
		file string
		want float64
	}{
		{"throughput/LayerGraphs/bert24_inference", 17.7899},
		{"throughput/LayerGraphs/bert24_training", 41.7458},
		{"throughput/LayerGraphs/gnmt_inference", 32.9107},
		{"throughput/LayerGraphs/gnmt_training", 107.004},
		{"throughput/LayerGraphs/inceptionv3_inference", 51.5519},
		{"throughput/LayerGraphs/resnet50_inference", 33.7747},
		{"throughput/OperatorGraphs/bert_l-12_inference", 147.478},
		{"throughput/OperatorGraphs/bert_l-3_inference", 27.9186},
		{"throughput/OperatorGraphs/bert_l-3_training", 65.3031},
		{"throughput/OperatorGraphs/bert_l-6_training", 72.865},
		{"latency/LayerGraphs/bert24_inference", 22.0351},
		{"latency/OperatorGraphs/bert_l-3_inference", 189.142},
	} {
		t.Run(c.file, func(t *testing.T) {
			p := DNNPartitioning(readDNN(t, c.file))
			s, err := downset.Solve(context.Background(), p, graph.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(s.Value-c.want) > 1e-4*c.want || !s.Optimal() || s.Gap() > 1e-8 {
				t.Errorf("largest load %v, bound %v (%s), optimal %v; want %v", s.Value, s.LowerBound, s.Bound, s.Optimal(), c.want)
			}
			if _, largest, err := p.Score(s.Place); err != nil || largest != s.Value {
				t.Errorf("the score is %v, %v", largest, err)
			}
		})
	}
}

func TestWriteDNNPartitioning(t *testing.T) {
	w := readDNN(t, "throughput/LayerGraphs/bert24_inference")
	place := make([]int, len(w.Nodes))
	place[1] = 6 // the CPU
	place[2] = 4
	var out bytes.Buffer
	if err := WriteDNNPartitioning(&out, w, place); err != nil {
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
	if err := WriteDNNPartitioning(&out, w, place); err == nil {
		t.Fatal("device 7 of 7 was written")
	}
}
