package accuracy_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestMeasuredKinds: of every strategy, engine, mode and precision the word
// that it was never measured is given if no row has it, and only there.
func TestMeasuredKinds(t *testing.T) {
	type kind struct {
		s costmodel.Strategy
		r string
		m costmodel.Mode
		p costmodel.Precision
	}
	rows := make(map[kind]bool)
	see := func(w costmodel.Workload) {
		g := fixtures.Must(hf.FromConfig("llama-3.2-1b", distConfig(t, "llama-3.2-1b")))(t)
		w.LoRATargets = w.LoRATargets[:min(1, len(w.LoRATargets))]
		w = fixtures.Must(estimate.Resolve(g, w))(t)
		rows[kind{w.Strategy, w.Runtime, w.Mode, w.Precision}] = true
		if word := estimate.Unmeasured(&w); word != "" {
			t.Errorf("%q was measured", word)
		}
	}
	for _, r := range slices.Concat(measuredRows(t), loraRows(t, "../../../fixtures/measured/more2.json"), maskRows(t)) {
		see(r.w)
	}
	for _, r := range distRows(t) {
		see(r.w)
	}
	for _, r := range ddpRows(t) {
		see(r.w)
	}
	for _, r := range fakeRows(t, "../../../fixtures/measured/fake_group_h200.jsonl") {
		see(r.w)
	}
	rows[kind{costmodel.FSDP, value.JAX, costmodel.Train, costmodel.FP32True}] = true // TestAccuracyJAX
	for _, s := range costmodel.Strategies() {
		for _, r := range s.Traits().Runtimes {
			for _, m := range []costmodel.Mode{costmodel.Infer, costmodel.Train, costmodel.Load} {
				for _, p := range []costmodel.Precision{costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP16Mixed, costmodel.FP16True, costmodel.FP32True} {
					w := costmodel.Workload{Strategy: s, Runtime: r, Mode: m, Precision: p, Optimizer: costmodel.AdamW}
					if got := estimate.Unmeasured(&w) == ""; got != (rows[kind{s, r, m, p}] || m == costmodel.Load) {
						t.Errorf("%s, %s, %s, %s: called measured: %t", s, r, m, p, got)
					}
				}
			}
		}
	}
	for _, change := range []func(*costmodel.Workload){
		func(w *costmodel.Workload) { w.Optimizer = value.Muon },
		func(w *costmodel.Workload) { w.Recompute = value.RecomputeSelective },
		func(w *costmodel.Workload) { w.EMA = true },
		func(w *costmodel.Workload) { w.Loss = value.LossFused },
	} {
		w := costmodel.Workload{Strategy: costmodel.FSDP, Runtime: value.Torch, Mode: costmodel.Train, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
		change(&w)
		if estimate.Unmeasured(&w) == "" {
			t.Errorf("%+v is called measured", w)
		}
	}
}
