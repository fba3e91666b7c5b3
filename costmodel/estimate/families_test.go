package estimate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestReadFamilies: reviewed families have no band, the others ±10 % and a warning; weights are
// exact.
func TestReadFamilies(t *testing.T) {
	for model, read := range map[string]bool{
		"llama-3.1-8b": true, "mistral-7b-v0.1": true, "qwen2.5-3b": true, "qwen3-8b": true, "gemma-2b": true, "gemma-2-9b": true,
		"phi-3-mini": true, "mixtral-8x7b": true, "qwen3-30b-a3b": true, "gpt2-xl": true, "qwen2.5-vl-3b": true,
		"opt-13b": false, "bloom-176b": false, "gemma-3-27b": false, "t5-11b": false, "mamba-2.8b": false, "gpt-oss-20b": false,
	} {
		g := fixtures.Must(load.Model(model, load.Options{BuiltIn: fixtures.Models()}))(t)
		for _, mode := range []costmodel.Mode{costmodel.Train, costmodel.Infer, costmodel.Load} {
			w := fixtures.Must(estimate.Resolve(g, costmodel.Workload{Mode: mode}))(t)
			table := fixtures.Must(estimate.Table(g, w))(t)
			want, says := 0.1, "is not reviewed"
			if compared, ok := estimate.ComparedBand(g.Family, &w); ok && !read {
				want, says = compared, "followed without a GPU"
			}
			if read || mode == costmodel.Load {
				want = 0
			}
			warned := slices.ContainsFunc(table.Warnings, func(said costmodel.Message) bool {
				return strings.Contains(said.String(), says) && strings.Contains(said.String(), g.Family)
			})
			if table.Band != want || warned != (want > 0) {
				t.Errorf("%s (%s), %s: a band of %g, warnings %q", model, g.Family, mode, table.Band, table.Warnings)
			}
		}
	}
}

// TestTiedStages: torch's stages train copies of a tied parameter apart, which a plan says.
func TestTiedStages(t *testing.T) {
	for _, c := range []struct {
		model, runtime string
		mode           costmodel.Mode
		want           bool
	}{
		{"gpt2", "torch", costmodel.Train, true},
		{"gpt2", "torch", costmodel.Load, false},
		{"gpt2", costmodel.Devmap, costmodel.Train, false},
		{"llama-3.1-8b", "torch", costmodel.Train, false},
	} {
		graph := builtIn(t, c.model)
		workload := fixtures.Must(estimate.Resolve(graph, costmodel.Workload{Strategy: costmodel.Pipeline, World: 2, Runtime: c.runtime, Mode: c.mode}))(t)
		table := fixtures.Must(estimate.Table(graph, workload))(t)
		if said := fmt.Sprint(table.Warnings); strings.Contains(said, "train apart") != c.want {
			t.Errorf("%s, %s, %s: %s", c.model, c.runtime, c.mode, said)
		}
	}
}

// TestSplitBands: where a tape of one GPU does not hold, the band is that of rules.
func TestSplitBands(t *testing.T) {
	alone := costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.BF16Mixed, Preset: "accelerate-loop", OneGPU: true}
	two, trainer := alone, alone
	two.OneGPU, trainer.Preset = false, "transformers"
	width := func(w costmodel.Workload) float64 {
		width, _ := estimate.ComparedBand("granitemoe_swa", &w)
		return width
	}
	if one := width(alone); width(two) <= one || width(trainer) <= one {
		t.Errorf("one GPU has ±%g, two ±%g, Trainer ±%g", one, width(two), width(trainer))
	}
}
