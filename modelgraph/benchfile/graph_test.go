package benchfile

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// graphOf finds what reads a file, as modelgraph/load does.
func graphOf(t *testing.T, name string) *modelgraph.Graph {
	t.Helper()
	data := open(t, name)
	var members map[string]any
	var has func(string) bool
	if json.Unmarshal(data, &members) == nil {
		has = func(m string) bool { _, ok := members[m]; return ok }
	}
	reader := Reader(data, has)
	if reader == nil {
		t.Fatalf("%s: not recognised", name)
	}
	file, err := reader(name, data)
	if err != nil {
		t.Fatal(err)
	}
	g, err := Graph(name, file)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGraphTotals checks the layers against the totals of the authors' files,
// summed apart from the parser: as many as there are units to place, forward
// and backward times in seconds, bytes.
func TestGraphTotals(t *testing.T) {
	t.Parallel()
	for _, want := range []struct {
		name            string
		layers          int
		forward, passes float64
		params          float64
	}{
		{"piper/bert32a100.json", 37, 0.33178, 0.97286, 5.879e9},
		{"dnn-partitioning/throughput/LayerGraphs/bert24_inference.json", 32, 0.092406, 0.092406, 1.82e9},
		{"dnn-partitioning/throughput/LayerGraphs/bert24_training.json", 32, 0, 0.217813, 3.65e9},
		{"dnn-partitioning/throughput/OperatorGraphs/bert_l-3_training.json", 0, 0, 0.122987, 3.30e9},
		{"pipedream/vgg16.graph.txt", 41, 0, 0, 0},
	} {
		g := graphOf(t, want.name)
		var forward, passes, params float64
		for i := range g.Layers {
			d := g.Layers[i].Declared
			forward += d.ForwardSeconds
			passes += d.ForwardSeconds + max(0, d.BackwardSeconds)
			params += float64(d.ParamsBytes)
		}
		if want.layers > 0 && len(g.Layers) != want.layers {
			t.Errorf("%s: %d layers, want %d", want.name, len(g.Layers), want.layers)
		}
		for _, c := range []struct {
			what      string
			got, want float64
		}{{"forward", forward, want.forward}, {"both passes", passes, want.passes}, {"parameters", params, want.params}} {
			if c.want > 0 && math.Abs(c.got-c.want) > 5e-3*c.want {
				t.Errorf("%s, %s: %v, want %v", want.name, c.what, c.got, c.want)
			}
		}
		for i := range g.Layers {
			if _, opaque := g.Layers[i].Op.(modelgraph.Opaque); !opaque || g.Layers[i].Declared == nil {
				t.Errorf("%s: %q is not declared", want.name, g.Layers[i].Name)
			}
		}
	}
}

func TestGraphKeepsEdges(t *testing.T) {
	t.Parallel()
	w, err := parsePipeDream("f", []byte(strings.ReplaceAll(dreamText, "node2", "no.de")))
	if err != nil {
		t.Fatal(err)
	}
	g, err := w.graph("dir/f.graph.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := g.Layers[1].Declared
	if g.Name != "f" || g.Layers[1].Name != "no_de" || len(g.Layers[1].Inputs) != 1 || g.Layers[1].Inputs[0] != "node1" ||
		d.ForwardSeconds != 0.0035 || d.BackwardSeconds != 0.005 || d.ActivationBytes != 10 || d.ParamsBytes != 8 {
		t.Errorf("%+v, %+v", g.Layers[1], d)
	}
	w.Edges = append(w.Edges, [2]int{1, 0})
	if _, err := w.graph("f"); err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("a cycle: %v", err)
	}
}

func TestReaderOfOthers(t *testing.T) {
	t.Parallel()
	none := func(string) bool { return false }
	for _, data := range []string{"", "a -- b", "{}", "[]"} {
		if Reader([]byte(data), nil) != nil || Reader([]byte(data), none) != nil {
			t.Errorf("%q is taken for a workload", data)
		}
	}
}
