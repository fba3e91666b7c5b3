package planner_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

func TestDumpLoRA(t *testing.T) {
	for _, r := range loraRows(t, "../fixtures/measured/more2.json") {
		if r.w.Quantize == "" {
			continue
		}
		g, _ := hf.FromConfig("config.json", []byte(peerConfigs[r.model]))
		w, err := estimate.Resolve(g, r.w)
		if err != nil {
			t.Fatal(err)
		}
		tb, _ := estimate.Table(g, w)
		u := tb.Units[5]
		fmt.Printf("params %d pad %d handed %.1f\n", u.Params, u.Padding, float64(u.Handed)/(1<<20))
		for _, s := range u.Steps {
			m := func(x int64) float64 { return float64(x) / (1 << 20) }
			fmt.Printf("%-40s saved %.2f fwd %.2f back %.2f grads %.2f\n", s.Layer, m(s.Saved), m(s.Forward), m(s.Backward), m(s.Grads))
		}
	}
}
