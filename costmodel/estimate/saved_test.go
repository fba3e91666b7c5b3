package estimate_test

import (
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestSavedIsNoDebt: no layer saves a negative number of bytes. That would be a tensor subtracted
// twice, and a longer run of units could need less than a shorter one, against the solvers' proofs.
func TestSavedIsNoDebt(t *testing.T) {
	const models = "../../fixtures/models/"
	entries := fixtures.Must(os.ReadDir(models))(t)
	tables := 0
	for _, entry := range entries {
		if _, err := os.Stat(models + entry.Name() + "/model_index.json"); err == nil || !entry.IsDir() {
			continue // a diffusion pipeline, which is planned by phases, or hub.json
		}
		g := fixtures.Must(load.Model(models+entry.Name(), load.Options{}))(t)
		for _, w := range tunings() {
			resolved, err := estimate.Resolve(g, w)
			if err != nil {
				continue // images for a model without a tower
			}
			table, err := estimate.Table(g, resolved)
			if err != nil {
				continue // targets that the model lacks
			}
			tables++
			for u := range table.Units {
				for _, s := range table.Units[u].Layers {
					if s.Saved < 0 {
						t.Errorf("%s, %+v: %s saves %d bytes", entry.Name(), w, s.Layer, s.Saved)
					}
				}
			}
		}
	}
	if tables < 100 {
		t.Errorf("only %d tables were made", tables)
	}
}

// tunings are trainings, most with adapters on a frozen base.
func tunings() (all []costmodel.Workload) {
	for _, w := range []costmodel.Workload{
		{},
		{LoRARank: 8, LoRATargets: []string{"all-linear"}},
		{LoRARank: 8, LoRATargets: []string{"q_proj"}},
		{LoRARank: 8, LoRATargets: []string{"all-linear"}, LoRAPrecision: value.AdaptersBF16},
		{LoRARank: 8, LoRATargets: []string{"all-linear"}, Quantize: value.NF4},
		{LoRARank: 8, LoRATargets: []string{"all-linear"}, Quantize: value.NF4, LoRAPrecision: value.AdaptersBF16},
		{LoRARank: 8, LoRATargets: []string{"q_proj"}, Quantize: value.Int8},
	} {
		for _, images := range []int64{0, 2} {
			for _, recompute := range []string{costmodel.RecomputeNone, costmodel.RecomputeFull} {
				w.Mode, w.Optimizer, w.Batch, w.Images, w.Recompute = costmodel.Train, costmodel.AdamW, 2, images, recompute
				all = append(all, w)
			}
		}
	}
	return all
}
