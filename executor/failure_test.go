package executor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// counted is a backend that knows how many of its machines are open.
type counted struct {
	executor.Backend
	opened, open int
}

func (counted *counted) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine, err := counted.Backend.Open(ctx, bound)
	if err == nil {
		counted.open++
		counted.opened++
	}
	return &countedMachine{machine, counted}, err
}

type countedMachine struct {
	executor.Machine
	of *counted
}

func (machine *countedMachine) Close() error {
	machine.of.open--
	return machine.Machine.Close()
}

// changed is a source whose values go through change; closing it gives err.
type changed struct {
	weights.Source
	change func(name string, chunk []byte) error
	err    error
	closed int
}

func (source *changed) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func([]byte) error) error {
	return source.Source.Stream(ctx, name, dtype, func(chunk []byte) error {
		if source.change != nil {
			if err := source.change(name, chunk); err != nil {
				return err
			}
		}
		return emit(chunk)
	})
}

func (source *changed) Close() error {
	source.closed++
	return errors.Join(source.err, source.Source.Close())
}

// TestFailures: whatever fails, the arenas are released and files are closed. No
// incomplete file appears, and earlier files remain.
func TestFailures(t *testing.T) {
	job := jobOf(t, "llama", training, 2)
	broken := errors.New("broken")
	for _, test := range []struct {
		name   string
		source changed
		cancel string // when the context ends
		opens  int    // machines
		is     func(err error) bool
	}{
		{name: "a source that breaks off", opens: 1, is: func(err error) bool { return errors.Is(err, broken) }, source: changed{change: func(name string, _ []byte) error {
			if name == "model.layers.1.mlp.up_proj.weight" {
				return broken
			}
			return nil
		}}},
		{name: "a file that changed", opens: 1, source: changed{err: broken}, is: func(err error) bool { return errors.Is(err, broken) }},
		{name: "a weight that is no number", opens: 1, source: changed{change: func(name string, chunk []byte) error {
			if name == "model.layers.1.mlp.up_proj.weight" {
				binary.LittleEndian.PutUint32(chunk[20:], math.Float32bits(float32(math.NaN())))
			}
			return nil
		}}, is: func(err error) bool {
			var value *executor.ValueError
			return errors.As(err, &value) && value.Unit == "model.layers.1" && value.Step == 1 && value.MicroBatch == 0
		}},
		{name: "an end before it begins", cancel: "before", is: func(err error) bool { return errors.Is(err, context.Canceled) }},
		{name: "an end while it loads", cancel: "loaded", opens: 1, is: func(err error) bool { return errors.Is(err, context.Canceled) }},
		{name: "an end behind a step", cancel: "step", opens: 1, is: func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			folder := t.TempDir()
			settings := executor.Settings{Steps: 2, Optimizer: adamW}
			settings.Save.State = filepath.Join(folder, "state")
			settings.Dump.Logits = filepath.Join(folder, "logits")
			settings.Dump.Grads = filepath.Join(folder, "grads")
			if err := os.WriteFile(settings.Dump.Grads, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			switch test.cancel {
			case "before":
				cancel()
			case "loaded":
				settings.Watch.Loaded = func(int64, int64) { cancel() }
			case "step":
				settings.Watch.Step = func(*executor.StepResult) { cancel() }
			}
			source := &test.source
			source.Source = weights.Random(job.Graph, 11)
			settings.Weights = source
			backend := &counted{Backend: cpu.New()}
			result, err := executor.Run(ctx, backend, job, &settings)
			if !test.is(err) || result != nil {
				t.Errorf("result %v, error %v", result, err)
			}
			if backend.opened != test.opens || backend.open != 0 || source.closed != 1 {
				t.Errorf("%d machines were opened, %d are open, the source was closed %d times", backend.opened, backend.open, source.closed)
			}
			entries, err := os.ReadDir(folder)
			if err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
			if data, err := os.ReadFile(settings.Dump.Grads); err != nil || string(data) != "before" {
				t.Errorf("what was there is %q, %v", data, err)
			}
		})
	}
}

// TestOccupied: a folder that holds something is refused before anything runs.
func TestOccupied(t *testing.T) {
	job := jobOf(t, "llama", training, 1)
	settings := executor.Settings{Steps: 1, Optimizer: adamW, Weights: weights.Random(job.Graph, 11)}
	settings.Save.State = t.TempDir()
	if err := os.WriteFile(filepath.Join(settings.Save.State, "here"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	backend := &counted{Backend: cpu.New()}
	if _, err := executor.Run(context.Background(), backend, job, &settings); !errors.Is(err, weights.ErrOccupied) || backend.opened != 0 {
		t.Errorf("%v, and %d machines were opened", err, backend.opened)
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	generation, loading := inference, inference
	generation.NewTokens, loading.Mode = 2, costmodel.Load
	train, infer, generate, load := jobOf(t, "llama", training, 1), jobOf(t, "llama", inference, 1), jobOf(t, "llama", generation, 1), jobOf(t, "llama", loading, 1)
	encoder := inference
	pooled := jobOf(t, "bert-pooled", encoder, 1)
	for _, test := range []struct {
		field  string
		job    *executor.Job
		change func(settings *executor.Settings)
	}{
		{"steps", train, func(settings *executor.Settings) { settings.Steps = 0 }},
		{"steps", infer, func(settings *executor.Settings) { settings.Steps = -1 }},
		{"steps", load, func(settings *executor.Settings) { settings.Steps = 1 }},
		{"lr", train, func(settings *executor.Settings) { settings.Optimizer.Rate = math.NaN() }},
		{"lr", train, func(settings *executor.Settings) { settings.Optimizer.Rate = math.Inf(1) }},
		{"betas", train, func(settings *executor.Settings) { settings.Optimizer.Beta2 = 1 }},
		{"weight_decay", train, func(settings *executor.Settings) { settings.Optimizer.Decay = -1 }},
		{"clip", train, func(settings *executor.Settings) { settings.Optimizer.Clip = -1 }},
		{"lr", infer, func(settings *executor.Settings) { settings.Optimizer.Rate = 1 }},
		{"stop", infer, func(settings *executor.Settings) { settings.Stop = []int32{1} }},
		{"stop", generate, func(settings *executor.Settings) { settings.Stop = []int32{5, 96} }},
		{"dump", infer, func(settings *executor.Settings) { settings.Dump.Grads = "grads" }},
		{"dump", load, func(settings *executor.Settings) { settings.Dump.Hidden = "hidden" }},
		{"dump", pooled, func(settings *executor.Settings) { settings.Dump.Logits = "logits" }},
		{"dump", train, func(settings *executor.Settings) { settings.Dump.Grads, settings.Dump.Logits = "./one", "one" }},
		{"save_state", train, func(settings *executor.Settings) { settings.Save.Model, settings.Save.State = "one", "one/" }},
		{"save_state", infer, func(settings *executor.Settings) { settings.Save.State = "state" }},
		{"resume", infer, func(settings *executor.Settings) { settings.Resume, settings.Weights = "state", nil }},
	} {
		settings := executor.Settings{Steps: 1, Weights: weights.Random(test.job.Graph, 1)}
		if test.job == load {
			settings.Steps = 0
		}
		if test.job == train {
			settings.Optimizer = adamW
		}
		if err := settings.Check(test.job); err != nil {
			t.Fatalf("%s: %v before anything is wrong", test.field, err)
		}
		test.change(&settings)
		var field *costmodel.FieldError
		if err := settings.Check(test.job); !errors.As(err, &field) || field.Field != test.field {
			t.Errorf("%v, want one of %s", err, test.field)
		}
	}
}

// TestArenas: of every region the last byte that was planned is touched, and
// what is not is room for alignment or a library.
func TestArenas(t *testing.T) {
	work := training
	work.Precision, work.Recompute = costmodel.BF16Mixed, costmodel.RecomputeFull
	for _, parts := range []int64{1, 2} {
		work.MicroBatches = parts
		result := run(t, jobOf(t, "gpt2", work, 2), executor.Settings{Steps: 1, Optimizer: adamW})
		for _, device := range result.Devices {
			for _, region := range device.Regions {
				if want := region.PlannedBytes; region.TouchedBytes != want && region.Name != "workspace" {
					t.Errorf("%d micro-batches, device %d: %d of %d bytes of %s were touched", parts, device.Device, region.TouchedBytes, want, region.Name)
				}
			}
			reasons := []string{"library workspace", "alignment", "room between buffers"}
			for _, gap := range device.Gaps {
				if !slices.Contains(reasons, gap.Reason) {
					t.Errorf("%d micro-batches, device %d: %+v", parts, device.Device, gap)
				}
			}
			if device.Stray != 0 {
				t.Errorf("device %d: %d bytes were written that no buffer has", device.Device, device.Stray)
			}
		}
	}
}

// TestReportedOnce: that a file changed is reported once, although closing it says so
// again; what else closing says is reported too.
func TestReportedOnce(t *testing.T) {
	job := jobOf(t, "llama", training, 2)
	file := &weights.ChangedError{File: "model.safetensors", Was: "short", Is: "long"}
	for closing, want := range map[error]int{file: 1, &weights.ChangedError{File: "other.safetensors"}: 2} {
		source := &changed{Source: weights.Random(job.Graph, 1), err: closing, change: func(string, []byte) error { return file }}
		_, err := executor.Run(t.Context(), cpu.New(), job, &executor.Settings{Steps: 1, Optimizer: adamW, Weights: source})
		if err == nil || strings.Count(err.Error(), "changed while it was read") != want {
			t.Errorf("want %d faults: %v", want, err)
		}
	}
}
