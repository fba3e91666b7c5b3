package executor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

var (
	training  = costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Batch: 4, MicroBatches: 2, Seq: 8, Precision: costmodel.FP32True, Optimizer: costmodel.AdamW}
	inference = costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Batch: 4, MicroBatches: 2, Seq: 8, Precision: costmodel.FP32True}
	adamW     = executor.Optimizer{Rate: 1e-2, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01}
)

// graphs are the families' models, each read once: its name is that of a folder.
var graphs = make(map[string]*modelgraph.Graph)

// jobOf compiles a small model of a family, cut into runs of equal length.
func jobOf(t *testing.T, family string, workload costmodel.Workload, devices int) *executor.Job {
	t.Helper()
	graph := graphs[family]
	if graph == nil {
		var err error
		if graph, err = backendtest.Graph(backendtest.Families[family]); err != nil {
			t.Fatal(err)
		}
		graphs[family] = graph
	}
	job := fixtures.Must(backendtest.Job(graph, workload, devices, backendtest.Runs(devices, 1, nil)))(t)
	return job
}

// run runs with random weights if the settings have no others.
func run(t *testing.T, job *executor.Job, settings executor.Settings) *executor.Result {
	t.Helper()
	if settings.Weights == nil && settings.Resume == "" {
		settings.Weights = weights.Random(job.Graph, 11)
	}
	result := fixtures.Must(executor.Run(context.Background(), cpu.New(), job, &settings))(t)
	return result
}

// tokens are sequences of a job.
func tokens(t *testing.T, job *executor.Job, sequences [][]int32) *executor.Tokens {
	t.Helper()
	var text strings.Builder
	for _, ids := range sequences {
		fmt.Fprintln(&text, strings.ReplaceAll(fmt.Sprint(ids), " ", ","))
	}
	read := fixtures.Must(executor.ReadTokens("ids.jsonl", strings.NewReader(text.String()), job))(t)
	return read
}

// tensors reads a file of fp32.
func tensors(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	file := fixtures.Must(os.Open(path))(t)
	defer file.Close() //nolint:errcheck // opened for reading
	info := fixtures.Must(file.Stat())(t)
	found := fixtures.Must(safetensors.ReadTensors(file, info.Size(), path))(t)
	values := make(map[string][]float32)
	for _, tensor := range found {
		raw := make([]byte, tensor.End-tensor.Begin)
		if _, err := file.ReadAt(raw, tensor.Begin); err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(raw); at += 4 {
			values[tensor.Name] = append(values[tensor.Name], math.Float32frombits(binary.LittleEndian.Uint32(raw[at:])))
		}
	}
	return values
}

// distance is ‖one − other‖ / ‖other‖.
func distance(one []float32, other []float64) float64 {
	var apart, norm float64
	for i, value := range other {
		apart += (float64(one[i]) - value) * (float64(one[i]) - value)
		norm += value * value
	}
	return math.Sqrt(apart / norm)
}

func wide(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, value := range values {
		out[i] = float64(value)
	}
	return out
}

// TestTrainedOnOneBatch: a model that sees the same sequences again and again
// knows them by heart.
func TestTrainedOnOneBatch(t *testing.T) {
	job := jobOf(t, "llama", training, 2)
	ids := [][]int32{{1, 2, 3, 4, 5, 6, 7, 8}, {9, 9, 8, 8, 7, 7, 6, 6}, {5, 15, 25, 35, 45, 55, 65, 75}, {80, 70, 60, 50, 40, 30, 20, 10}}
	result := run(t, job, executor.Settings{Steps: 40, Optimizer: adamW, Tokens: tokens(t, job, ids)})
	first, last := result.Steps[0].Loss, result.Steps[39].Loss
	if math.Abs(first-math.Log(96)) > 0.3 || last > 0.1 {
		t.Errorf("the loss goes from %.3f to %.3f, want it from about ln 96 = 4.56 to below 0.1", first, last)
	}
}

// TestLoaded: a plan of mode load fills its arenas with weights, and runs nothing.
func TestLoaded(t *testing.T) {
	work := inference
	work.Mode = costmodel.Load
	var bytes, all int64
	settings := executor.Settings{}
	settings.Watch.Loaded = func(done, of int64) { bytes, all = done, of }
	result := run(t, jobOf(t, "qwen2", work, 2), settings)
	planned := int64(0)
	for _, device := range result.Devices {
		for _, region := range device.Regions {
			planned += region.PlannedBytes
			if region.TouchedBytes != region.PlannedBytes {
				t.Errorf("device %d: %+v", device.Device, region)
			}
		}
		if len(device.Gaps) > 0 || device.Stray > 0 {
			t.Errorf("device %d: %+v, %d stray bytes", device.Device, device.Gaps, device.Stray)
		}
	}
	if len(result.Steps) > 0 || planned == 0 || bytes != planned || all != planned {
		t.Errorf("%d steps; %d of %d bytes were loaded, and %d planned", len(result.Steps), bytes, all, planned)
	}
}

// TestResumed: steps in two runs leave the bytes of as many in one, wherever the
// second runs.
func TestResumed(t *testing.T) {
	for _, precision := range []costmodel.Precision{costmodel.FP32True, costmodel.BF16True, costmodel.BF16Mixed} {
		for _, optimizer := range []string{costmodel.AdamW, costmodel.SGD} {
			t.Run(fmt.Sprint(precision, " ", optimizer), func(t *testing.T) {
				work := training
				work.Precision, work.Optimizer = precision, optimizer
				folder := t.TempDir()
				settings := executor.Settings{Steps: 4, Optimizer: adamW, Seed: 5}
				settings.Save.State = filepath.Join(folder, "whole")
				whole := run(t, jobOf(t, "qwen2", work, 1), settings)

				settings.Steps, settings.Save.State = 2, filepath.Join(folder, "half")
				run(t, jobOf(t, "qwen2", work, 3), settings)
				settings.Resume, settings.Save.State = settings.Save.State, filepath.Join(folder, "again")
				again := run(t, jobOf(t, "qwen2", work, 2), settings)

				for i, step := range again.Steps {
					if want := whole.Steps[2+i]; step.Loss != want.Loss || step.Number != want.Number {
						t.Errorf("step %d has loss %v, in one run step %d has %v", step.Number, step.Loss, want.Number, want.Loss)
					}
				}
				for _, name := range []string{"state.json", "state.safetensors"} {
					same(t, filepath.Join(folder, "whole", name), filepath.Join(folder, "again", name))
				}
			})
		}
	}
}

// same holds two files to the same bytes.
func same(t *testing.T, one, other string) {
	t.Helper()
	first := fixtures.Must(os.ReadFile(one))(t)
	second := fixtures.Must(os.ReadFile(other))(t)
	if !bytes.Equal(first, second) {
		t.Errorf("%s and %s differ", one, other)
	}
}

func vocabOf(job *executor.Job) int {
	for _, layer := range job.Graph.Layers {
		if op, is := layer.Op.(modelgraph.Head); is {
			return int(op.Vocab)
		}
	}
	return 0
}
