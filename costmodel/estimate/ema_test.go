package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// TestEMA: one more copy of the trained weights, in their type, among the
// optimizer's states; cut as the weights are.
func TestEMA(t *testing.T) {
	g := fromConfig(t, `{"model_type": "llama", `+tiny+`}`)
	for _, c := range []struct {
		w    costmodel.Workload
		each int64 // bytes a parameter, of all GPUs that share a copy
		cut  int64
	}{
		{costmodel.Workload{Precision: costmodel.BF16True}, 2, 1},
		{costmodel.Workload{Precision: costmodel.BF16Mixed}, 4, 1},
		{costmodel.Workload{Precision: costmodel.BF16Mixed, Strategy: costmodel.DDP, World: 4}, 4, 1},
		{costmodel.Workload{Precision: costmodel.BF16Mixed, Strategy: costmodel.FSDP, World: 4}, 4, 4},
		{costmodel.Workload{Precision: costmodel.BF16True, Strategy: costmodel.HSDP, World: 4}, 2, 2},
	} {
		var state [2]int64
		for i, ema := range []bool{false, true} {
			w := c.w
			w.Mode, w.EMA, w.Optimizer = costmodel.Train, ema, value.SGDMomentum
			w, err := estimate.Resolve(g, w)
			if err != nil {
				t.Fatal(err)
			}
			tab, err := estimate.Table(g, w)
			if err != nil {
				t.Fatal(err)
			}
			for u := range tab.Units {
				state[i] += tab.Units[u].OptimizerState
			}
		}
		if got, want := state[1]-state[0], c.each*g.ParamCount()/c.cut; got != want {
			t.Errorf("%s, %s: the average takes %d bytes, want %d", c.w.Strategy, c.w.Precision, got, want)
		}
	}
}
