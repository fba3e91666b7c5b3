package executor_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestSavedModel: the saved files are a checkpoint of the same model, which computes what the run
// would have computed next.
func TestSavedModel(t *testing.T) {
	for _, precision := range []costmodel.Precision{costmodel.FP32True, costmodel.BF16Mixed} {
		for _, family := range []string{"qwen2", "gpt2", "phi3"} {
			work, folder := training, t.TempDir()
			work.Precision = precision
			job := jobOf(t, family, work, 3)
			settings := executor.Settings{Steps: 2, Optimizer: adamW, Seed: 4}
			settings.Save.Model, settings.Save.State = filepath.Join(folder, "model"), filepath.Join(folder, "state")
			run(t, job, settings)
			_, went := dumped(t, job, executor.Settings{Steps: 1, Optimizer: adamW, Resume: settings.Save.State, Tokens: tokens(t, job, [][]int32{{1, 2, 3, 4, 5, 6, 7, 8}})}, "logits")

			graph := fixtures.Must(load.Model(settings.Save.Model, load.Options{}))(t)
			source := fixtures.Must(weights.Checkpoint(graph))(t)
			saved := inference
			saved.Precision = costmodel.FP32True
			if precision != costmodel.FP32True {
				saved.Precision = costmodel.BF16True
			}
			loaded := fixtures.Must(backendtest.Job(graph, saved, 1, nil))(t)
			_, again := dumped(t, loaded, executor.Settings{Steps: 1, Weights: source, Tokens: tokens(t, loaded, [][]int32{{1, 2, 3, 4, 5, 6, 7, 8}})}, "logits")
			most := 1e-6
			if precision != costmodel.FP32True {
				most = 1e-2
			}
			if apart := distance(again["logits"], wide(went["logits"])); !(apart <= most) {
				t.Errorf("%s, %v: what was saved computes logits %.3g from those of the run", family, precision, apart)
			}
		}
	}
}

// TestMasters: they begin as what the weights are before they are rounded. A
// step that moves nothing leaves them so.
func TestMasters(t *testing.T) {
	work := training
	work.Precision = costmodel.BF16Mixed
	job := jobOf(t, "llama-tied", work, 2)
	settings := executor.Settings{Steps: 1}
	settings.Save.State = filepath.Join(t.TempDir(), "state")
	run(t, job, settings)
	saved := tensors(t, filepath.Join(settings.Save.State, "state.safetensors"))
	for name, want := range randomWeights(t, job) {
		if !slices.Equal(saved[name+".master"], want) {
			t.Errorf("%s.master is not the weight that was drawn", name)
		}
	}
}

// TestMemoryIsBounded: what moves between files and arenas moves in stretches,
// however large a parameter is.
func TestMemoryIsBounded(t *testing.T) {
	graph := fixtures.Must(backendtest.Graph(`{"model_type":"llama","hidden_size":64,"intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":4,"vocab_size":400000}`))(t)
	work := inference
	work.Batch, work.MicroBatches, work.Seq = 1, 1, 2
	job := fixtures.Must(backendtest.Job(graph, work, 1, nil))(t)
	folder := t.TempDir()
	settings := executor.Settings{Steps: 1}
	settings.Save.Model, settings.Dump.Logits = filepath.Join(folder, "model"), filepath.Join(folder, "logits")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(t, job, settings)
	runtime.ReadMemStats(&after)
	const parameter = 4 * 64 * 400_000 // bytes, of the embedding as of the head
	if got := after.TotalAlloc - before.TotalAlloc; got > parameter {
		t.Errorf("%d bytes were allocated on the heap to draw, write and save two parameters of %d bytes", got, parameter)
	} else {
		t.Logf("%d bytes on the heap for two parameters of %d", got, parameter)
	}
}
