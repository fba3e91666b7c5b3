package accuracy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// dreamboothRow is a run of diffusers' own script (measured/how/measure_dreambooth.py).
type dreamboothRow struct {
	Case     string
	First    bool `json:"predicted_first"`
	Moments  map[string][]int64
	Peak     int64 `json:"peak_allocated"`
	Reserved int64 `json:"peak_reserved"`
}

// cutFlux is the built-in FLUX.1-dev with fewer blocks.
func cutFlux(t *testing.T, double, single, encoder int64) *diffusers.Pipeline {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../../fixtures/models/flux.1-dev")); err != nil {
		t.Fatal(err)
	}
	for _, component := range []string{"transformer", "text_encoder_2"} {
		var sizes map[string]any
		path := filepath.Join(folder, component, "config.json")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &sizes); err != nil {
			t.Fatal(err)
		}
		sizes["num_layers"] = encoder
		if component == "transformer" {
			sizes["num_layers"], sizes["num_single_layers"] = double, single
		}
		if text, err = json.Marshal(sizes); err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	pipeline, err := diffusers.Open(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return pipeline
}

// plan is the prediction of name;double/single;resolution;batch;precision;opts;world.
func (row *dreamboothRow) plan(t *testing.T) *phases.Plan {
	t.Helper()
	parts := strings.Split(row.Case, ";")
	number := func(text string) int64 { return caseNumber(t, row.Case, text) }
	train := &costmodel.Workload{
		Preset: "diffusers-dreambooth-lora", Mode: costmodel.Train, Recompute: costmodel.RecomputeNone, LoRARank: 4,
		Precision: map[string]costmodel.Precision{"no": costmodel.FP32True, "bf16": costmodel.BF16Mixed, "fp16": costmodel.FP16Mixed}[parts[4]],
		LoRATargets: []string{
			"attn.to_k", "attn.to_q", "attn.to_v", "attn.to_out.0", "attn.add_k_proj", "attn.add_q_proj", "attn.add_v_proj", "attn.to_add_out",
			"ff.net.0.proj", "ff.net.2", "ff_context.net.0.proj", "ff_context.net.2",
		},
	}
	work, encoder := phases.Workload{Height: number(parts[2]), Batch: number(parts[3]), Train: train}, int64(2)
	for _, opt := range strings.Split(parts[5], ",") {
		switch {
		case opt == "ck":
			train.Recompute = costmodel.RecomputeFull
		case opt == "cache":
			work.CacheLatents = true
		case strings.HasPrefix(opt, "r"):
			train.LoRARank = number(opt[1:])
		case opt == "t24":
			encoder = 24
		}
	}
	double, single, _ := strings.Cut(parts[1], "/")
	h200 := costmodel.Device{CapacityBytes: 150 << 30, WorkspaceBytes: 32 << 20}
	plans, err := phases.Of(cutFlux(t, number(double), number(single), encoder), work, h200, int(number(parts[6])))
	if err != nil {
		t.Fatal(err)
	}
	return plans[0]
}

// at is a moment's measured bytes, and the excess of the prediction, which is of the second step: a run
// that ended in its first step has no states, and forward had no workspace of backward's thread.
func (row *dreamboothRow) at(plan *phases.Plan, name string) (measured, beyond int64) {
	list := row.Moments[strings.TrimSuffix(name, "s")]
	if name == "latents" {
		list = row.Moments[name]
	}
	if plan.Workload.CacheLatents && (name == "prompts" || name == "latents") || name == "load" || len(list) == 0 {
		return 0, 0
	}
	if len(row.Moments["update"]) < 2 {
		beyond = plan.Phases[len(plan.Phases)-1].Memory[0].OptimizerState
	}
	if len(list) == 1 && (name == "latents" || name == "forward") {
		beyond += 32 << 20
	}
	return list[len(list)-1], beyond
}

// TestDreamBoothAccuracy predicts each moment of diffusers' DreamBooth LoRA script
// for Flux, on one H200: within 0.5 %, and the allocator's pool within its range.
func TestDreamBoothAccuracy(t *testing.T) {
	var out strings.Builder
	var errors []float64
	inRange, count := 0, 0
	for _, row := range fixtures.Must(fixtures.Rows[dreamboothRow]("../../../fixtures/measured/dreambooth_h200.jsonl"))(t) {
		plan := row.plan(t)
		fmt.Fprintf(&out, "%-52s", row.Case)
		most, beyond := costmodel.Memory{}, int64(0)
		for i := range plan.Phases {
			used := plan.Phases[i].Memory[0]
			measured, less := row.at(plan, plan.Phases[i].Name)
			if used.Total() > most.Total() {
				most, beyond = used, less
			}
			if measured > 0 {
				off := 100 * float64(used.Total()-less-measured) / float64(measured)
				errors = append(errors, math.Abs(off))
				fmt.Fprintf(&out, " %s %+.3f %%", plan.Phases[i].Name, off)
			}
		}
		pool := [2]float64{}
		for end, part := range plan.Pool {
			pool[end] = float64(most.Total()-beyond) + part*float64(most.Total()-most.Params)
		}
		count++
		if float64(row.Reserved) >= pool[0]*.999 && float64(row.Reserved) <= pool[1]*1.001 {
			inRange++
		}
		fmt.Fprintf(&out, " reserved %.2f in %.2f–%.2f GB\n", float64(row.Reserved)/1e9, pool[0]/1e9, pool[1]/1e9)
	}
	slices.Sort(errors)
	worst, middle := errors[len(errors)-1], errors[len(errors)/2]
	t.Logf("\n%s%d moments of %d rows: worst %.3f %%, median %.3f %%; %d of %d in the pool's range", out.String(), len(errors), count, worst, middle, inRange, count)
	if worst > .5 || middle > .05 || len(errors) < 60 || 10*inRange < 9*count {
		t.Errorf("%d moments, worst %.3f %%, median %.3f %%; %d of %d in the pool's range", len(errors), worst, middle, inRange, count)
	}
}
