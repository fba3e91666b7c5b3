package timeline_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestStageForms: the closed form of a pipeline's stage, for the solver, is the walk's peak, for
// random stretches of every built-in model under random workloads. TestStageChain compares both on
// random tables.
func TestStageForms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../fixtures/models/*/config.json")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d models: %v", len(files), err)
	}
	rng := rand.New(rand.NewPCG(11, 12))
	tried, refused := 0, 0
	for _, file := range files {
		data := fixtures.Must(os.ReadFile(file))(t)
		g := fixtures.Must(hf.FromConfig("config.json", data))(t)
		for range 7 {
			table, err := stageTable(g, randomStages(rng))
			var no *costmodel.FieldError
			if errors.As(err, &no) { // LoRA on a model without its targets, say
				refused++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			tried++
			compareForms(t, rng, file, table)
		}
	}
	if tried < 175 {
		t.Errorf("%d workloads tried, %d refused: the draw is one-sided", tried, refused)
	}
}

// stageTable is the table of a workload, without images if the model reads none.
func stageTable(g *modelgraph.Graph, w costmodel.Workload) (*costmodel.Table, error) {
	resolved, err := estimate.Resolve(g, w)
	if err != nil {
		return nil, err
	}
	table, err := estimate.Table(g, resolved)
	var no *costmodel.FieldError
	if errors.As(err, &no) && no.Field == "images" {
		w.Images = 0
		return stageTable(g, w)
	}
	return table, err
}

// randomStages returns a random workload of a pipeline.
func randomStages(rng *rand.Rand) costmodel.Workload {
	w := costmodel.Workload{
		Strategy: costmodel.Pipeline, World: 4, Mode: pick(rng, costmodel.Train, costmodel.Train, costmodel.Infer, costmodel.Load),
		Precision: pick(rng, "", costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP16Mixed, costmodel.FP32True), Batch: 8, MicroBatches: pick[int64](rng, 1, 4, 8), Seq: 128,
		Attention: pick(rng, "", value.EagerAttention), Loss: pick(rng, "", value.LossChunked, value.LossFused), Images: rng.Int64N(2),
	}
	if w.Mode == costmodel.Train {
		w.Optimizer = pick(rng, costmodel.AdamW, value.AdamWForeach, costmodel.SGD)
		w.Recompute = pick(rng, costmodel.RecomputeNone, costmodel.RecomputeFull, value.RecomputeSelective)
		if rng.IntN(3) == 0 {
			w.LoRARank, w.LoRATargets = 8, []string{"all-linear"}
			w.Quantize = pick(rng, "", value.NF4, value.Int8)
		} else if w.Precision == costmodel.BF16True || w.Precision == costmodel.FP32True {
			w.DP, w.TP = pick[costmodel.Degree](rng, 0, 2, 4), pick[costmodel.Degree](rng, 0, 0, 0, 2)
			w.World *= w.DP.Count() * w.TP.Count()
		}
	}
	return w
}

// compareForms compares the two forms on random stages of a table.
func compareForms(t *testing.T, rng *rand.Rand, file string, table *costmodel.Table) {
	t.Helper()
	chain, n := timeline.NewRanks(table), len(table.Units)
	dev := &costmodel.Device{WorkspaceBytes: 9 << 20}
	for range 6 {
		s := costmodel.Schedule{Kind: pick(rng, costmodel.OneFOneB, costmodel.GPipe), Stages: 4, Chunks: 1, MicroBatches: table.Workload.MicroBatches}
		at := costmodel.Interval{First: rng.IntN(n)}
		at.End = at.First + 1 + rng.IntN(n-at.First)
		place := timeline.Rank{Schedule: s, Index: rng.Int64N(4), Chunks: []costmodel.Interval{at}}
		workspace := table.Workspaces * dev.WorkspaceBytes
		if walk, got := timeline.RankStep(table, place, dev).Peak(), chain.Peak(place, workspace); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v, %+v: closed form %d, walk %d (%s)", file, table.Workload, place, got, walk.Memory.Total(), walk.At)
		}
		if at.End == n || table.Workload.MicroBatches < 4 {
			continue
		}
		place.Schedule.Kind, place.Schedule.Chunks = costmodel.Interleaved, 2
		first := at.End + rng.IntN(n-at.End)
		place.Chunks = append(place.Chunks, costmodel.Interval{First: first, End: first + 1 + rng.IntN(n-first)})
		if walk, got := timeline.RankStep(table, place, dev).Peak(), chain.Peak(place, workspace); got != walk.Memory.Total() {
			t.Fatalf("%s, %+v, %+v: closed form %d, walk %d (%s)", file, table.Workload, place, got, walk.Memory.Total(), walk.At)
		}
	}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }
