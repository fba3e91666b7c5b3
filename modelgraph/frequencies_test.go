package modelgraph_test

import (
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
)

// TestFrequencies: values that papers and configs fix. All types compared with
// torch: TestRunning of package hf.
func TestFrequencies(t *testing.T) {
	at := func(op modelgraph.Attention, tokens int64) []float32 {
		t.Helper()
		inverse, _, err := op.Frequencies(tokens)
		if err != nil {
			t.Fatal(err)
		}
		return inverse
	}
	// RoFormer, §3.2.2: base^(-2i/d).
	plain := at(modelgraph.Attention{HeadDim: 8, Rope: true}, 1)
	for i, want := range []float32{1, 0.1, 0.01, 0.001} {
		if len(plain) != 4 || math.Abs(float64(plain[i]/want-1)) > 1e-7 {
			t.Errorf("frequencies %v", plain)
		}
	}
	if got := at(modelgraph.Attention{HeadDim: 64, RopeDim: 16, Rope: true}, 1); len(got) != 8 {
		t.Errorf("%d pairs of a rotary part of 16", len(got))
	}
	dynamic := modelgraph.Attention{HeadDim: 8, Rotation: modelgraph.Rotation{Type: "dynamic", Factor: 2, Trained: 100}}
	if short, long := at(dynamic, 100), at(dynamic, 200); short[3] != plain[3] || long[3] >= short[3] || long[0] != 1 {
		t.Errorf("frequencies up to 100 positions %v, at 200 %v", short, long)
	}
	// YaRN, §3.3: 0.1·ln(s) + 1, and 1 if nothing is stretched (get_mscale).
	for stretch, want := range map[float64]float64{4: 0.1*math.Log(4) + 1, 1: 1, 0.5: 1} {
		yarn := modelgraph.Attention{HeadDim: 8, Rotation: modelgraph.Rotation{Type: "yarn", Factor: stretch, Trained: 4096}}
		if _, factor, err := yarn.Frequencies(1); err != nil || factor != want {
			t.Errorf("yarn's factor at %v: %v, %v; want %v", stretch, factor, err, want)
		}
	}
}

// TestFrequenciesRefuse: what makes no frequencies is reported with its name
// and value.
func TestFrequenciesRefuse(t *testing.T) {
	for _, tt := range []struct {
		op   modelgraph.Attention
		want string
	}{
		{modelgraph.Attention{HeadDim: 64, Rotation: modelgraph.Rotation{Type: "longrope"}}, `rope type "longrope" is not known here (known: default, linear, dynamic, llama3, yarn)`},
		{modelgraph.Attention{HeadDim: 7}, "rope width 7 is not even"},
		{modelgraph.Attention{}, "rope width 0 is not even"},
		{modelgraph.Attention{HeadDim: 1 << 40}, "rope width 1099511627776 is not even and from 2 to 65536"},
		{modelgraph.Attention{HeadDim: 8, Rotation: modelgraph.Rotation{Type: "linear"}}, `rope type "linear" needs a factor`},
		{modelgraph.Attention{HeadDim: 8, Rotation: modelgraph.Rotation{Type: "yarn", Factor: 2}}, `rope type "yarn" needs the number of positions`},
		{modelgraph.Attention{HeadDim: 8, Rotation: modelgraph.Rotation{Type: "yarn", Factor: 2, Trained: 9, Base: 1}}, `rope type "yarn" needs a base above 1, it is 1`},
		{modelgraph.Attention{HeadDim: 8, Rotation: modelgraph.Rotation{Type: "llama3", Factor: 2, Trained: 9, Slow: 4, Fast: 1}}, "a high one above that: they are 4 and 1"},
		{modelgraph.Attention{HeadDim: 2, Rotation: modelgraph.Rotation{Type: "dynamic", Factor: 2, Trained: 9}}, "the width must not be 2"},
	} {
		if _, _, err := tt.op.Frequencies(1); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %s", tt.op.Rotation, err, tt.want)
		}
	}
}
