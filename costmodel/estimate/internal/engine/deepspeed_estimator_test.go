package engine_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// printed is a size as DeepSpeed prints it: units of 2^30, called GB.
func printed(b int64) string { return fmt.Sprintf("%.2f", float64(b)/(1<<30)) }

func wantStates(t *testing.T, what string, got engine.ModelStates, gpu, cpu string) {
	t.Helper()
	t.Logf("%s: %s GB a GPU, %s GB of host memory", what, printed(got.GPU), printed(got.CPU))
	if g, c := printed(got.GPU), printed(got.CPU); g != gpu || c != cpu {
		t.Errorf("%s: %s GB a GPU and %s GB of host memory, want %s and %s", what, g, c, gpu, cpu)
	}
}

// TestDeepSpeedEstimator checks the estimator against DeepSpeed's documented outputs
// (docs/code-docs/source/memory.rst), except ZeRO 2 without offload: the document's 15.93 GB is of
// older code (4P + 16P/N). Today's code prints 11.28 for 2851 million parameters, 11.29 (11.287)
// for the exact count.
func TestDeepSpeedEstimator(t *testing.T) {
	node := engine.Cluster{GPUsPerNode: 8, Nodes: 1}
	optimizer, both := engine.Offload{Optimizer: true}, engine.Offload{Optimizer: true, Params: true}
	with := func(o engine.Offload) engine.Offload { o.ZeroInit = true; return o }
	// E1 and E2: t5-3b as loaded; E3: its printed counts.
	const p, largest = 2851598336, 32899072
	wantStates(t, "E1 offload", engine.Zero2ModelStates(p, node, true), "5.31", "127.48")
	wantStates(t, "E1 none", engine.Zero2ModelStates(p, node, false), "11.29", "127.48")
	wantStates(t, "E1 offload, cold", engine.Zero2ModelStates(2851e6, node, true), "5.31", "127.45")
	wantStates(t, "E1 none, cold", engine.Zero2ModelStates(2851e6, node, false), "11.28", "127.45")
	for _, c := range []struct {
		name                            string
		o                               engine.Offload
		gpu, init, whole                string
		coldGPU, coldInit, coldWholeCPU string
	}{
		{"both", both, "0.12", "71.71", "127.48", "0.12", "71.69", "127.45"},
		{"optimizer", optimizer, "0.79", "63.74", "127.48", "0.78", "63.72", "127.45"},
		{"none", engine.Offload{}, "6.10", "1.47", "127.48", "6.09", "1.43", "127.45"},
	} {
		wantStates(t, "E2 "+c.name+", zero_init", engine.Zero3ModelStates(p, largest, node, with(c.o)), c.gpu, c.init)
		wantStates(t, "E2 "+c.name, engine.Zero3ModelStates(p, largest, node, c.o), c.gpu, c.whole)
		wantStates(t, "E3 "+c.name+", zero_init", engine.Zero3ModelStates(2851e6, 32e6, node, with(c.o)), c.coldGPU, c.coldInit)
		wantStates(t, "E3 "+c.name, engine.Zero3ModelStates(2851e6, 32e6, node, c.o), c.coldGPU, c.coldWholeCPU)
	}
	// E4: t5-large on 4 GPUs, in whole MiB.
	four := engine.Cluster{GPUsPerNode: 4, Nodes: 1}
	for name, c := range map[string]struct {
		o    engine.Offload
		want int64
	}{"1": {engine.Offload{}, 3291}, "2": {both, 125}, "3": {optimizer, 477}} {
		if got := engine.Zero3ModelStates(737668096, 32899072, four, c.o).GPU >> 20; got != c.want {
			t.Errorf("E4 case %s: %d MB, want %d", name, got, c.want)
		}
	}
}

// TestLargestLayer: t5-3b's parameters and largest layer (its embedding) match DeepSpeed's
// document.
func TestLargestLayer(t *testing.T) {
	g, err := hf.FromConfig("config.json", []byte(`{"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 1024, "d_kv": 128, "d_ff": 16384,
		"num_layers": 24, "num_heads": 32, "vocab_size": 32128}`))
	if err != nil {
		t.Fatal(err)
	}
	if p, largest := g.ParamCount(), engine.LargestLayer(g); p != 2851598336 || largest != 32128*1024 {
		t.Errorf("%d parameters, largest layer %d", p, largest)
	}
}
