package planner_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func TestZZ(t *testing.T) {
	cfg := peerConfigs["qwen2.5-vl-3b"]
	if f := os.Getenv("ZZCFG"); f != "" {
		b, _ := os.ReadFile(f)
		cfg = string(b)
	}
	g, err := hf.FromConfig("config.json", []byte(cfg))
	if err != nil {
		t.Fatal(err)
	}
	w := workload("train", 1, 2048)
	fmt.Sscan(os.Getenv("ZZIMG"), &w.Images)
	fmt.Sscan(os.Getenv("ZZPX"), &w.ImageSize)
	w, err = estimate.Resolve(g, w)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	var saved int64
	for u := range tab.Units {
		U := &tab.Units[u]
		var us int64
		for _, s := range U.Steps {
			us += s.Saved
			if u < 8 || u > 24 && u < 39 {
				fmt.Printf("  %-50s saved %d fwd %d bwd %d (grads %d) grads %d\n", s.Layer, s.Saved, s.Forward, s.Backward, s.BackwardGrads, s.Grads)
			}
		}
		saved += us
		fmt.Println(u, U.Name, us, "cum", saved, "params", U.Params)
		if u > 60 {
			break
		}
	}
	_ = costmodel.Train
}
