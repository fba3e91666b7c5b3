package load

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkloads: the public partitioning problems are known by what is in
// them, whatever they are called.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	const folder = "../../fixtures/workloads/"
	for name, layers := range map[string]int{
		"pipedream/vgg16.graph.txt":                                    41,
		"piper/bert32a100.json":                                        37,
		"dnn-partitioning/throughput/LayerGraphs/bert24_training.json": 32,
	} {
		g, err := Model(folder+name, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(g.Layers) != layers || g.Source != folder+name {
			t.Errorf("%s: %d layers, want %d; source %q", name, len(g.Layers), layers, g.Source)
		}
	}
}

func TestWorkloadFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"graph":  {"a -- b -- forward_compute_time=x, backward_compute_time=1, activation_size=0, parameter_size=0", `line 1: forward_compute_time: "x"`},
		"p.json": {`{"mbsInBatch": 0}`, "maxMemoryPerDevice: missing"},
		"d.json": {`{"maxFPGAs": -1}`, "maxSizePerFPGA: missing"},
		"t.txt":  {"some text", "not a JSON object"},
	} {
		path := filepath.Join(dir, name)
		write(t, path, c.text)
		if _, err := Model(path, Options{}); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
